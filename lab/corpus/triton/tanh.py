"""Hyperbolic tangent. Flat: every program has BLOCK neighbouring elements."""

import triton
import triton.language as tl


@triton.jit
def tanh(out_ptr, x_ptr, count, BLOCK: tl.constexpr):
    """2 sigmoid(2x) - 1: neither overflows nor needs a library."""
    lanes = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = lanes < count
    x = tl.load(x_ptr + lanes, mask=mask).to(tl.float32)
    tl.store(out_ptr + lanes, 2.0 * tl.sigmoid(2.0 * x) - 1.0, mask=mask)
