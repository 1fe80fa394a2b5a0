"""Logistic function. Flat: every program has BLOCK neighbouring elements."""

import triton
import triton.language as tl


@triton.jit
def sigmoid(out_ptr, x_ptr, count, BLOCK: tl.constexpr):
    """1 / (1 + exp(-x))."""
    lanes = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = lanes < count
    x = tl.load(x_ptr + lanes, mask=mask).to(tl.float32)
    tl.store(out_ptr + lanes, tl.sigmoid(x), mask=mask)
