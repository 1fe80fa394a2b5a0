"""Logarithm of the softmax along the last dim: one program a row."""

import triton
import triton.language as tl


@triton.jit
def log_softmax_rows(out_ptr, x_ptr, columns, BLOCK: tl.constexpr):
    """x - max - log(sum(exp(x - max))): the probabilities themselves are never needed."""
    row = tl.program_id(0).to(tl.int64)
    lanes = tl.arange(0, BLOCK)
    mask = lanes < columns
    x = tl.load(x_ptr + row * columns + lanes, mask=mask, other=-float("inf")).to(tl.float32)
    below = x - tl.max(x, axis=0)
    out = below - tl.log(tl.sum(tl.exp(below), axis=0))
    tl.store(out_ptr + row * columns + lanes, out, mask=mask)


@triton.jit
def log_softmax_of_probabilities(out_ptr, x_ptr, columns, BLOCK: tl.constexpr):
    """WRONG: the logarithm of probabilities in the tensor's dtype: one close to 1 has become 1."""
    row = tl.program_id(0).to(tl.int64)
    lanes = tl.arange(0, BLOCK)
    mask = lanes < columns
    x = tl.load(x_ptr + row * columns + lanes, mask=mask, other=-float("inf")).to(tl.float32)
    weights = tl.exp(x - tl.max(x, axis=0))
    probabilities = (weights / tl.sum(weights, axis=0)).to(out_ptr.dtype.element_ty)
    tl.store(out_ptr + row * columns + lanes, tl.log(probabilities.to(tl.float32)), mask=mask)
