"""Gaussian error linear unit in its tanh form. Flat: every program has BLOCK neighbouring elements."""

import triton
import triton.language as tl


@triton.jit
def tanh(x):
    """Through the sigmoid, which neither overflows nor needs a library."""
    return 2.0 * tl.sigmoid(2.0 * x) - 1.0


@triton.jit
def gelu_tanh(out_ptr, x_ptr, count, BLOCK: tl.constexpr):
    """0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3)))."""
    lanes = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = lanes < count
    x = tl.load(x_ptr + lanes, mask=mask).to(tl.float32)
    inner = 0.7978845608028654 * (x + 0.044715 * x * x * x)
    tl.store(out_ptr + lanes, 0.5 * x * (1.0 + tanh(inner)), mask=mask)


@triton.jit
def gelu_no_half(out_ptr, x_ptr, count, BLOCK: tl.constexpr):
    """WRONG: the factor 0.5 is missing."""
    lanes = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = lanes < count
    x = tl.load(x_ptr + lanes, mask=mask).to(tl.float32)
    inner = 0.7978845608028654 * (x + 0.044715 * x * x * x)
    tl.store(out_ptr + lanes, x * (1.0 + tanh(inner)), mask=mask)
