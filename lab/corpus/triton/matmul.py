"""Matrix product in tiles of BLOCK x BLOCK, with a float32 accumulator. Inputs of any strides."""

import triton
import triton.language as tl


@triton.jit
def matmul(out_ptr, a_ptr, b_ptr, M, N, K, a_row, a_column, b_row, b_column, BLOCK: tl.constexpr):
    """Add up the products for one tile of the output, BLOCK of the inner dim at a time."""
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
def matmul_overwrite(out_ptr, a_ptr, b_ptr, M, N, K, a_row, a_column, b_row, b_column, BLOCK: tl.constexpr):
    """WRONG: `acc =` in place of `acc +=`. Only the last step of the inner dim is left."""
    rows = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)[:, None]
    columns = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)[None, :]
    acc = tl.zeros((BLOCK, BLOCK), dtype=tl.float32)
    for start in range(0, K, BLOCK):
        across = start + tl.arange(0, BLOCK)[None, :]
        down = start + tl.arange(0, BLOCK)[:, None]
        a = tl.load(a_ptr + rows * a_row + across * a_column, (rows < M) & (across < K), other=0.0)
        b = tl.load(b_ptr + down * b_row + columns * b_column, (down < K) & (columns < N), other=0.0)
        acc = tl.dot(a, b, input_precision="ieee")
    tl.store(out_ptr + rows.to(tl.int64) * N + columns, acc, (rows < M) & (columns < N))
