"""Softmax along the last dim: one program a row, the whole row in registers."""

import triton
import triton.language as tl


@triton.jit
def softmax(out_ptr, x_ptr, columns, BLOCK: tl.constexpr):
    """Give the lanes beyond the row minus infinity: they take no part in the maximum, nor in the sum."""
    row = tl.program_id(0).to(tl.int64)
    lanes = tl.arange(0, BLOCK)
    mask = lanes < columns
    x = tl.load(x_ptr + row * columns + lanes, mask=mask, other=-float("inf")).to(tl.float32)
    weights = tl.exp(x - tl.max(x, axis=0))
    out = weights / tl.sum(weights, axis=0)
    tl.store(out_ptr + row * columns + lanes, out, mask=mask)


@triton.jit
def softmax_other_zero(out_ptr, x_ptr, columns, BLOCK: tl.constexpr):
    """WRONG: the lanes beyond the row are 0, and count in the maximum and in the sum."""
    row = tl.program_id(0).to(tl.int64)
    lanes = tl.arange(0, BLOCK)
    mask = lanes < columns
    x = tl.load(x_ptr + row * columns + lanes, mask=mask, other=0.0).to(tl.float32)
    weights = tl.exp(x - tl.max(x, axis=0))
    out = weights / tl.sum(weights, axis=0)
    tl.store(out_ptr + row * columns + lanes, out, mask=mask)
