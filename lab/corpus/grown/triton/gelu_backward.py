"""Gradient of gelu in its tanh form. Flat: every program has BLOCK neighbouring elements."""

import triton
import triton.language as tl


@triton.jit
def limited(x):
    """Keep what is cubed from overflowing: from 16 on the tanh is 1, and its slope 0."""
    return tl.where(x > 16.0, 16.0, tl.where(x < -16.0, -16.0, x))


@triton.jit
def tanh(x):
    """Through the sigmoid, which neither overflows nor needs a library."""
    return 2.0 * tl.sigmoid(2.0 * x) - 1.0


@triton.jit
def gelu_backward_flat(result_ptr, grad_ptr, x_ptr, count, BLOCK: tl.constexpr):
    """grad/2 (1 + t + x (1 - t^2) z'), t = tanh(z), z = sqrt(2/pi) (x + 0.044715 x^3)."""
    lanes = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = lanes < count
    grad = tl.load(grad_ptr + lanes, mask=mask).to(tl.float32)
    x = limited(tl.load(x_ptr + lanes, mask=mask).to(tl.float32))
    t = tanh(0.7978845608028654 * (x + 0.044715 * x * x * x))
    slope = 0.7978845608028654 * (1.0 + 3.0 * 0.044715 * x * x)
    result = grad * (0.5 * (1.0 + t + x * (1.0 - t * t) * slope))
    tl.store(result_ptr + lanes, result, mask=mask)


@triton.jit
def gelu_backward_no_upstream(result_ptr, grad_ptr, x_ptr, count, BLOCK: tl.constexpr):
    """WRONG: the gradient that comes from above is taken to be 1."""
    lanes = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = lanes < count
    x = limited(tl.load(x_ptr + lanes, mask=mask).to(tl.float32))
    t = tanh(0.7978845608028654 * (x + 0.044715 * x * x * x))
    slope = 0.7978845608028654 * (1.0 + 3.0 * 0.044715 * x * x)
    result = 0.5 * (1.0 + t + x * (1.0 - t * t) * slope)
    tl.store(result_ptr + lanes, result, mask=mask)


@triton.jit
def gelu_backward_no_three(result_ptr, grad_ptr, x_ptr, count, BLOCK: tl.constexpr):
    """WRONG: the slope of the cube lacks its factor of 3."""
    lanes = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = lanes < count
    grad = tl.load(grad_ptr + lanes, mask=mask).to(tl.float32)
    x = limited(tl.load(x_ptr + lanes, mask=mask).to(tl.float32))
    t = tanh(0.7978845608028654 * (x + 0.044715 * x * x * x))
    slope = 0.7978845608028654 * (1.0 + 0.044715 * x * x)
    result = grad * (0.5 * (1.0 + t + x * (1.0 - t * t) * slope))
    tl.store(result_ptr + lanes, result, mask=mask)


@triton.jit
def gelu_backward_wrong_constant(result_ptr, grad_ptr, x_ptr, count, BLOCK: tl.constexpr):
    """WRONG: 0.04715 in place of 0.044715."""
    lanes = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = lanes < count
    grad = tl.load(grad_ptr + lanes, mask=mask).to(tl.float32)
    x = limited(tl.load(x_ptr + lanes, mask=mask).to(tl.float32))
    t = tanh(0.7978845608028654 * (x + 0.04715 * x * x * x))
    slope = 0.7978845608028654 * (1.0 + 3.0 * 0.04715 * x * x)
    result = grad * (0.5 * (1.0 + t + x * (1.0 - t * t) * slope))
    tl.store(result_ptr + lanes, result, mask=mask)
