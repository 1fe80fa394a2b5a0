"""Rows divided by their Euclidean length. One program a row."""

import triton
import triton.language as tl


@triton.jit
def l2norm_rows(out_ptr, x_ptr, columns, eps, BLOCK: tl.constexpr):
    """x / sqrt(sum(x^2) + eps): a row of zeros stays one."""
    row = tl.program_id(0).to(tl.int64)
    lanes = tl.arange(0, BLOCK)
    mask = lanes < columns
    x = tl.load(x_ptr + row * columns + lanes, mask=mask, other=0.0).to(tl.float32)
    out = x / tl.sqrt(tl.sum(x * x, axis=0) + eps)
    tl.store(out_ptr + row * columns + lanes, out, mask=mask)


@triton.jit
def l2norm_zero_row(out_ptr, x_ptr, columns, eps, BLOCK: tl.constexpr):
    """WRONG: without eps a row of zeros is divided by 0."""
    row = tl.program_id(0).to(tl.int64)
    lanes = tl.arange(0, BLOCK)
    mask = lanes < columns
    x = tl.load(x_ptr + row * columns + lanes, mask=mask, other=0.0).to(tl.float32)
    out = x / tl.sqrt(tl.sum(x * x, axis=0))
    tl.store(out_ptr + row * columns + lanes, out, mask=mask)
