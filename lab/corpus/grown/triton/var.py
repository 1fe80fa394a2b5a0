"""Variance along the last dim: one program a row, two passes over registers."""

import triton
import triton.language as tl


@triton.jit
def var_rows(out_ptr, x_ptr, columns, correction, BLOCK: tl.constexpr):
    """Only lanes of the row are centred."""
    row = tl.program_id(0).to(tl.int64)
    lanes = tl.arange(0, BLOCK)
    mask = lanes < columns
    x = tl.load(x_ptr + row * columns + lanes, mask=mask, other=0.0).to(tl.float32)
    mean = tl.sum(x, axis=0) / columns
    centred = tl.where(mask, x - mean, 0.0)
    total = tl.sum(centred * centred, axis=0)
    tl.store(out_ptr + row, total / tl.maximum(columns - correction, 0))


@triton.jit
def var_tail_lanes(out_ptr, x_ptr, columns, correction, BLOCK: tl.constexpr):
    """WRONG: a lane beyond the row is 0 - mean, and its square is in the sum."""
    row = tl.program_id(0).to(tl.int64)
    lanes = tl.arange(0, BLOCK)
    mask = lanes < columns
    x = tl.load(x_ptr + row * columns + lanes, mask=mask, other=0.0).to(tl.float32)
    mean = tl.sum(x, axis=0) / columns
    centred = x - mean
    total = tl.sum(centred * centred, axis=0)
    tl.store(out_ptr + row, total / tl.maximum(columns - correction, 0))
