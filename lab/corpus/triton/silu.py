"""Sigmoid linear unit. Flat: every program has BLOCK neighbouring elements."""

import triton
import triton.language as tl


@triton.jit
def silu(out_ptr, x_ptr, count, BLOCK: tl.constexpr):
    """x * sigmoid(x), in float32."""
    lanes = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = lanes < count
    x = tl.load(x_ptr + lanes, mask=mask).to(tl.float32)
    tl.store(out_ptr + lanes, x * tl.sigmoid(x), mask=mask)


@triton.jit
def silu_double_argument(out_ptr, x_ptr, count, BLOCK: tl.constexpr):
    """WRONG: the sigmoid is given 2x."""
    lanes = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = lanes < count
    x = tl.load(x_ptr + lanes, mask=mask).to(tl.float32)
    tl.store(out_ptr + lanes, x * tl.sigmoid(2.0 * x), mask=mask)
