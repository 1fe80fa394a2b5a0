"""Softmax over the rows of a matrix that is wrong: lanes beyond a row weigh as much as a zero."""

import triton
import triton.language as tl


@triton.jit
def softmax(out_ptr, x_ptr, row_stride, columns, BLOCK: tl.constexpr):
    """Give the lanes beyond the row the weight of a zero."""
    row = tl.program_id(0)
    offsets = tl.arange(0, BLOCK)
    mask = offsets < columns
    x = tl.load(x_ptr + row * row_stride + offsets, mask=mask, other=0.0)
    x = x - tl.max(x, axis=0)
    numerator = tl.exp(x)
    denominator = tl.sum(numerator, axis=0)
    tl.store(out_ptr + row * row_stride + offsets, numerator / denominator, mask=mask)
