"""Matrix products in square tiles. Inputs of any strides."""

import triton
import triton.language as tl


@triton.jit
def matmul_square_tiles(
    out_ptr, a_ptr, b_ptr, M, N, K, a_row, a_column, b_row, b_column, BLOCK: tl.constexpr
):
    """Add up in float32, whatever the dtype is."""
    rows = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)[:, None]
    columns = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)[None, :]
    acc = tl.zeros((BLOCK, BLOCK), dtype=tl.float32)
    for start in range(0, K, BLOCK):
        across = start + tl.arange(0, BLOCK)[None, :]
        down = start + tl.arange(0, BLOCK)[:, None]
        a = tl.load(a_ptr + rows * a_row + across * a_column, (rows < M) & (across < K), other=0.0)
        b = tl.load(b_ptr + down * b_row + columns * b_column, (down < K) & (columns < N), other=0.0)
        acc += tl.dot(a, b, input_precision="ieee")
    tl.store(out_ptr + rows.to(tl.int64) * N + columns, acc, (rows < M) & (columns < N))


@triton.jit
def matmul_in_bfloat16(out_ptr, a_ptr, b_ptr, M, N, K, a_row, a_column, b_row, b_column, BLOCK: tl.constexpr):
    """WRONG: the running sum is rounded to bfloat16 after every step of the inner dim."""
    rows = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)[:, None]
    columns = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)[None, :]
    acc = tl.zeros((BLOCK, BLOCK), dtype=tl.bfloat16)
    for start in range(0, K, BLOCK):
        across = start + tl.arange(0, BLOCK)[None, :]
        down = start + tl.arange(0, BLOCK)[:, None]
        a = tl.load(a_ptr + rows * a_row + across * a_column, (rows < M) & (across < K), other=0.0)
        b = tl.load(b_ptr + down * b_row + columns * b_column, (down < K) & (columns < N), other=0.0)
        acc = (acc + tl.dot(a, b, input_precision="ieee")).to(tl.bfloat16)
    tl.store(out_ptr + rows.to(tl.int64) * N + columns, acc, (rows < M) & (columns < N))


@triton.jit
def matmul_split(out_ptr, a_ptr, b_ptr, M, N, K, a_row, a_column, b_row, b_column, BLOCK: tl.constexpr):
    """Parts of the inner dim are merged in the output's memory, which the first of them begins."""
    rows = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)[:, None]
    columns = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)[None, :]
    place = out_ptr + rows.to(tl.int64) * N + columns
    inside = (rows < M) & (columns < N)
    for start in range(0, K, BLOCK):
        across = start + tl.arange(0, BLOCK)[None, :]
        down = start + tl.arange(0, BLOCK)[:, None]
        a = tl.load(a_ptr + rows * a_row + across * a_column, (rows < M) & (across < K), other=0.0)
        b = tl.load(b_ptr + down * b_row + columns * b_column, (down < K) & (columns < N), other=0.0)
        before = tl.load(place, inside & (start > 0), other=0.0)
        tl.store(place, before + tl.dot(a, b, input_precision="ieee"), inside)


@triton.jit
def matmul_split_uninitialised(
    out_ptr, a_ptr, b_ptr, M, N, K, a_row, a_column, b_row, b_column, BLOCK: tl.constexpr
):
    """WRONG: the first part is merged with what happens to be in the output's memory."""
    rows = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)[:, None]
    columns = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)[None, :]
    place = out_ptr + rows.to(tl.int64) * N + columns
    inside = (rows < M) & (columns < N)
    for start in range(0, K, BLOCK):
        across = start + tl.arange(0, BLOCK)[None, :]
        down = start + tl.arange(0, BLOCK)[:, None]
        a = tl.load(a_ptr + rows * a_row + across * a_column, (rows < M) & (across < K), other=0.0)
        b = tl.load(b_ptr + down * b_row + columns * b_column, (down < K) & (columns < N), other=0.0)
        before = tl.load(place, inside, other=0.0)
        tl.store(place, before + tl.dot(a, b, input_precision="ieee"), inside)
