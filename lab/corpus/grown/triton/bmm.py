"""Matrix products of a batch in square tiles: one program a tile of one pair. Inputs of any strides."""

import triton
import triton.language as tl


@triton.jit
def bmm_tiles(
    out_ptr,
    a_ptr,
    b_ptr,
    M,
    N,
    K,
    a_batch,
    a_row,
    a_column,
    b_batch,
    b_row,
    b_column,
    BLOCK: tl.constexpr,
):
    """Both factors are of the program's batch."""
    batch = tl.program_id(2).to(tl.int64)
    a_start = a_ptr + batch * a_batch
    b_start = b_ptr + batch * b_batch
    rows = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)[:, None]
    columns = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)[None, :]
    acc = tl.zeros((BLOCK, BLOCK), dtype=tl.float32)
    for start in range(0, K, BLOCK):
        across = start + tl.arange(0, BLOCK)[None, :]
        down = start + tl.arange(0, BLOCK)[:, None]
        a = tl.load(a_start + rows * a_row + across * a_column, (rows < M) & (across < K), other=0.0)
        b = tl.load(b_start + down * b_row + columns * b_column, (down < K) & (columns < N), other=0.0)
        acc += tl.dot(a, b, input_precision="ieee")
    tl.store(out_ptr + (batch * M + rows) * N + columns, acc, (rows < M) & (columns < N))


@triton.jit
def bmm_first_batch(
    out_ptr,
    a_ptr,
    b_ptr,
    M,
    N,
    K,
    a_batch,
    a_row,
    a_column,
    b_batch,
    b_row,
    b_column,
    BLOCK: tl.constexpr,
):
    """WRONG: the second factor is that of the first batch, for all of them."""
    batch = tl.program_id(2).to(tl.int64)
    a_start = a_ptr + batch * a_batch
    b_start = b_ptr
    rows = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)[:, None]
    columns = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)[None, :]
    acc = tl.zeros((BLOCK, BLOCK), dtype=tl.float32)
    for start in range(0, K, BLOCK):
        across = start + tl.arange(0, BLOCK)[None, :]
        down = start + tl.arange(0, BLOCK)[:, None]
        a = tl.load(a_start + rows * a_row + across * a_column, (rows < M) & (across < K), other=0.0)
        b = tl.load(b_start + down * b_row + columns * b_column, (down < K) & (columns < N), other=0.0)
        acc += tl.dot(a, b, input_precision="ieee")
    tl.store(out_ptr + (batch * M + rows) * N + columns, acc, (rows < M) & (columns < N))
