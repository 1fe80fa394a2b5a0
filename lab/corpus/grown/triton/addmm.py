"""A scaled matrix product plus a scaled matrix, in square tiles of contiguous matrices."""

import triton
import triton.language as tl


@triton.jit
def addmm_tiles(out_ptr, x_ptr, a_ptr, b_ptr, M, N, K, beta, alpha, BLOCK: tl.constexpr):
    """beta*x + alpha*(a @ b), where x is not read if beta is 0."""
    rows = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)[:, None]
    columns = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)[None, :]
    inside = (rows < M) & (columns < N)
    acc = tl.zeros((BLOCK, BLOCK), dtype=tl.float32)
    for start in range(0, K, BLOCK):
        across = start + tl.arange(0, BLOCK)[None, :]
        down = start + tl.arange(0, BLOCK)[:, None]
        a = tl.load(a_ptr + rows.to(tl.int64) * K + across, (rows < M) & (across < K), other=0.0)
        b = tl.load(b_ptr + down.to(tl.int64) * N + columns, (down < K) & (columns < N), other=0.0)
        acc += tl.dot(a, b, input_precision="ieee")
    place = rows.to(tl.int64) * N + columns
    x = tl.load(x_ptr + place, inside & (beta != 0.0), other=0.0).to(tl.float32)
    tl.store(out_ptr + place, beta * x + alpha * acc, inside)


@triton.jit
def addmm_factors_swapped(out_ptr, x_ptr, a_ptr, b_ptr, M, N, K, beta, alpha, BLOCK: tl.constexpr):
    """WRONG: the matrix is scaled by the factor of the product, and the product by that of the matrix."""
    rows = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)[:, None]
    columns = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)[None, :]
    inside = (rows < M) & (columns < N)
    acc = tl.zeros((BLOCK, BLOCK), dtype=tl.float32)
    for start in range(0, K, BLOCK):
        across = start + tl.arange(0, BLOCK)[None, :]
        down = start + tl.arange(0, BLOCK)[:, None]
        a = tl.load(a_ptr + rows.to(tl.int64) * K + across, (rows < M) & (across < K), other=0.0)
        b = tl.load(b_ptr + down.to(tl.int64) * N + columns, (down < K) & (columns < N), other=0.0)
        acc += tl.dot(a, b, input_precision="ieee")
    place = rows.to(tl.int64) * N + columns
    x = tl.load(x_ptr + place, inside & (beta != 0.0), other=0.0).to(tl.float32)
    tl.store(out_ptr + place, alpha * x + beta * acc, inside)


@triton.jit
def addmm_no_alpha(out_ptr, x_ptr, a_ptr, b_ptr, M, N, K, beta, alpha, BLOCK: tl.constexpr):
    """WRONG: the product is not scaled."""
    rows = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)[:, None]
    columns = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)[None, :]
    inside = (rows < M) & (columns < N)
    acc = tl.zeros((BLOCK, BLOCK), dtype=tl.float32)
    for start in range(0, K, BLOCK):
        across = start + tl.arange(0, BLOCK)[None, :]
        down = start + tl.arange(0, BLOCK)[:, None]
        a = tl.load(a_ptr + rows.to(tl.int64) * K + across, (rows < M) & (across < K), other=0.0)
        b = tl.load(b_ptr + down.to(tl.int64) * N + columns, (down < K) & (columns < N), other=0.0)
        acc += tl.dot(a, b, input_precision="ieee")
    place = rows.to(tl.int64) * N + columns
    x = tl.load(x_ptr + place, inside & (beta != 0.0), other=0.0).to(tl.float32)
    tl.store(out_ptr + place, beta * x + acc, inside)
