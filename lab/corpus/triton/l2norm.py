"""Rows divided by their Euclidean length. One program a row."""

import triton
import triton.language as tl


@triton.jit
def l2norm(out_ptr, x_ptr, columns, BLOCK: tl.constexpr):
    """x / sqrt(sum(x^2) + 1e-12)."""
    row = tl.program_id(0).to(tl.int64)
    lanes = tl.arange(0, BLOCK)
    mask = lanes < columns
    x = tl.load(x_ptr + row * columns + lanes, mask=mask, other=0.0).to(tl.float32)
    square = tl.sum(x * x, axis=0)
    out = x / tl.sqrt(square + 1e-12)
    tl.store(out_ptr + row * columns + lanes, out, mask=mask)


@triton.jit
def l2norm_no_root(out_ptr, x_ptr, columns, BLOCK: tl.constexpr):
    """WRONG: the square root is missing."""
    row = tl.program_id(0).to(tl.int64)
    lanes = tl.arange(0, BLOCK)
    mask = lanes < columns
    x = tl.load(x_ptr + row * columns + lanes, mask=mask, other=0.0).to(tl.float32)
    square = tl.sum(x * x, axis=0)
    out = x / (square + 1e-12)
    tl.store(out_ptr + row * columns + lanes, out, mask=mask)
