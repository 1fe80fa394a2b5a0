"""RMS norm of rows of any stride, with a weight: one program a row."""

import triton
import triton.language as tl


@triton.jit
def rmsnorm_strided(
    out_ptr, x_ptr, weight_ptr, columns, x_row, x_column, weight_column, eps, BLOCK: tl.constexpr
):
    """Rows begin `x_row` elements apart, however wide they are."""
    row = tl.program_id(0).to(tl.int64)
    lanes = tl.arange(0, BLOCK)
    mask = lanes < columns
    x = tl.load(x_ptr + row * x_row + lanes * x_column, mask=mask, other=0.0).to(tl.float32)
    weight = tl.load(weight_ptr + lanes * weight_column, mask=mask, other=0.0).to(tl.float32)
    mean_square = tl.sum(x * x, axis=0) / columns
    out = x / tl.sqrt(mean_square + eps) * weight
    tl.store(out_ptr + row * columns + lanes, out, mask=mask)


@triton.jit
def rmsnorm_row_is_width(
    out_ptr, x_ptr, weight_ptr, columns, x_row, x_column, weight_column, eps, BLOCK: tl.constexpr
):
    """WRONG: rows are taken to begin as far apart as they are wide."""
    row = tl.program_id(0).to(tl.int64)
    lanes = tl.arange(0, BLOCK)
    mask = lanes < columns
    x = tl.load(x_ptr + row * columns + lanes * x_column, mask=mask, other=0.0).to(tl.float32)
    weight = tl.load(weight_ptr + lanes * weight_column, mask=mask, other=0.0).to(tl.float32)
    mean_square = tl.sum(x * x, axis=0) / columns
    out = x / tl.sqrt(mean_square + eps) * weight
    tl.store(out_ptr + row * columns + lanes, out, mask=mask)
