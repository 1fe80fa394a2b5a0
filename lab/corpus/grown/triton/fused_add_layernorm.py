"""The sum of an input and a residual, and its layer norm: one program a row."""

import triton
import triton.language as tl


@triton.jit
def fused_add_layernorm_rows(out_ptr, sum_ptr, x_ptr, residual_ptr, columns, eps, BLOCK: tl.constexpr):
    """The sum is an output of its own: both inputs stay as they are."""
    row = tl.program_id(0).to(tl.int64)
    lanes = tl.arange(0, BLOCK)
    mask = lanes < columns
    places = row * columns + lanes
    x = tl.load(x_ptr + places, mask=mask, other=0.0).to(tl.float32)
    x += tl.load(residual_ptr + places, mask=mask, other=0.0).to(tl.float32)
    tl.store(sum_ptr + places, x, mask=mask)
    mean = tl.sum(x, axis=0) / columns
    centred = tl.where(mask, x - mean, 0.0)
    variance = tl.sum(centred * centred, axis=0) / columns
    tl.store(out_ptr + places, centred / tl.sqrt(variance + eps), mask=mask)


@triton.jit
def fused_add_layernorm_in_place(out_ptr, sum_ptr, x_ptr, residual_ptr, columns, eps, BLOCK: tl.constexpr):
    """WRONG: the sum is written over the residual too, which the caller still needs."""
    row = tl.program_id(0).to(tl.int64)
    lanes = tl.arange(0, BLOCK)
    mask = lanes < columns
    places = row * columns + lanes
    x = tl.load(x_ptr + places, mask=mask, other=0.0).to(tl.float32)
    x += tl.load(residual_ptr + places, mask=mask, other=0.0).to(tl.float32)
    tl.store(residual_ptr + places, x, mask=mask)
    tl.store(sum_ptr + places, x, mask=mask)
    mean = tl.sum(x, axis=0) / columns
    centred = tl.where(mask, x - mean, 0.0)
    variance = tl.sum(centred * centred, axis=0) / columns
    tl.store(out_ptr + places, centred / tl.sqrt(variance + eps), mask=mask)
