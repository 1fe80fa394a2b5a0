"""Leaky rectified linear unit. Flat: every program has BLOCK neighbouring elements."""

import triton
import triton.language as tl


@triton.jit
def leaky_relu(out_ptr, x_ptr, count, BLOCK: tl.constexpr):
    """Let a hundredth of what is negative through."""
    lanes = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = lanes < count
    x = tl.load(x_ptr + lanes, mask=mask).to(tl.float32)
    tl.store(out_ptr + lanes, tl.where(x > 0.0, x, 0.01 * x), mask=mask)


@triton.jit
def leaky_relu_slope(out_ptr, x_ptr, count, BLOCK: tl.constexpr):
    """WRONG: a tenth comes through."""
    lanes = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = lanes < count
    x = tl.load(x_ptr + lanes, mask=mask).to(tl.float32)
    tl.store(out_ptr + lanes, tl.where(x > 0.0, x, 0.1 * x), mask=mask)
