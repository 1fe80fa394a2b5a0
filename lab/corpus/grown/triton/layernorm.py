"""Layer norm with weight and bias: one program a row, two passes over registers."""

import triton
import triton.language as tl


@triton.jit
def layernorm_affine(out_ptr, x_ptr, weight_ptr, bias_ptr, columns, eps, BLOCK: tl.constexpr):
    """Only lanes of the row are centred: the others stay 0 and add nothing to the variance."""
    row = tl.program_id(0).to(tl.int64)
    lanes = tl.arange(0, BLOCK)
    mask = lanes < columns
    x = tl.load(x_ptr + row * columns + lanes, mask=mask, other=0.0).to(tl.float32)
    mean = tl.sum(x, axis=0) / columns
    centred = tl.where(mask, x - mean, 0.0)
    variance = tl.sum(centred * centred, axis=0) / columns
    weight = tl.load(weight_ptr + lanes, mask=mask, other=0.0).to(tl.float32)
    bias = tl.load(bias_ptr + lanes, mask=mask, other=0.0).to(tl.float32)
    out = centred / tl.sqrt(variance + eps) * weight + bias
    tl.store(out_ptr + row * columns + lanes, out, mask=mask)


@triton.jit
def layernorm_tail_in_variance(out_ptr, x_ptr, weight_ptr, bias_ptr, columns, eps, BLOCK: tl.constexpr):
    """WRONG: a lane beyond the row is 0 - mean, and its square is in the variance."""
    row = tl.program_id(0).to(tl.int64)
    lanes = tl.arange(0, BLOCK)
    mask = lanes < columns
    x = tl.load(x_ptr + row * columns + lanes, mask=mask, other=0.0).to(tl.float32)
    mean = tl.sum(x, axis=0) / columns
    centred = x - mean
    variance = tl.sum(centred * centred, axis=0) / columns
    weight = tl.load(weight_ptr + lanes, mask=mask, other=0.0).to(tl.float32)
    bias = tl.load(bias_ptr + lanes, mask=mask, other=0.0).to(tl.float32)
    out = centred / tl.sqrt(variance + eps) * weight + bias
    tl.store(out_ptr + row * columns + lanes, out, mask=mask)


@triton.jit
def layernorm_fixed_eps(out_ptr, x_ptr, weight_ptr, bias_ptr, columns, eps, BLOCK: tl.constexpr):
    """WRONG: eps is 1e-5, whatever the caller asks for."""
    row = tl.program_id(0).to(tl.int64)
    lanes = tl.arange(0, BLOCK)
    mask = lanes < columns
    x = tl.load(x_ptr + row * columns + lanes, mask=mask, other=0.0).to(tl.float32)
    mean = tl.sum(x, axis=0) / columns
    centred = tl.where(mask, x - mean, 0.0)
    variance = tl.sum(centred * centred, axis=0) / columns
    weight = tl.load(weight_ptr + lanes, mask=mask, other=0.0).to(tl.float32)
    bias = tl.load(bias_ptr + lanes, mask=mask, other=0.0).to(tl.float32)
    out = centred / tl.sqrt(variance + 1e-5) * weight + bias
    tl.store(out_ptr + row * columns + lanes, out, mask=mask)
