"""Softmax along the last dim of rows of any stride: one program a row, the whole row in registers."""

import triton
import triton.language as tl


@triton.jit
def softmax_strided(out_ptr, x_ptr, columns, x_row, x_column, BLOCK: tl.constexpr):
    """Rows begin `x_row` elements apart, however wide they are."""
    row = tl.program_id(0).to(tl.int64)
    lanes = tl.arange(0, BLOCK)
    mask = lanes < columns
    x = tl.load(x_ptr + row * x_row + lanes * x_column, mask=mask, other=-float("inf")).to(tl.float32)
    weights = tl.exp(x - tl.max(x, axis=0))
    out = weights / tl.sum(weights, axis=0)
    tl.store(out_ptr + row * columns + lanes, out, mask=mask)


@triton.jit
def softmax_row_is_width(out_ptr, x_ptr, columns, x_row, x_column, BLOCK: tl.constexpr):
    """WRONG: rows are taken to begin as far apart as they are wide."""
    row = tl.program_id(0).to(tl.int64)
    lanes = tl.arange(0, BLOCK)
    mask = lanes < columns
    x = tl.load(x_ptr + row * columns + lanes * x_column, mask=mask, other=-float("inf")).to(tl.float32)
    weights = tl.exp(x - tl.max(x, axis=0))
    out = weights / tl.sum(weights, axis=0)
    tl.store(out_ptr + row * columns + lanes, out, mask=mask)


@triton.jit
def softmax_finite_sentinel(out_ptr, x_ptr, columns, x_row, x_column, BLOCK: tl.constexpr):
    """WRONG: lanes beyond the row are -1e4, which is more than a row of smaller logits has."""
    row = tl.program_id(0).to(tl.int64)
    lanes = tl.arange(0, BLOCK)
    mask = lanes < columns
    x = tl.load(x_ptr + row * x_row + lanes * x_column, mask=mask, other=-1e4).to(tl.float32)
    weights = tl.exp(x - tl.max(x, axis=0))
    out = weights / tl.sum(weights, axis=0)
    tl.store(out_ptr + row * columns + lanes, out, mask=mask)


@triton.jit
def softmax_exponentials_in_input(out_ptr, x_ptr, columns, x_row, x_column, BLOCK: tl.constexpr):
    """WRONG: the exponentials are kept in the input's memory until they are divided."""
    row = tl.program_id(0).to(tl.int64)
    lanes = tl.arange(0, BLOCK)
    mask = lanes < columns
    place = x_ptr + row * x_row + lanes * x_column
    x = tl.load(place, mask=mask, other=-float("inf")).to(tl.float32)
    weights = tl.exp(x - tl.max(x, axis=0))
    tl.store(place, weights, mask=mask)
    total = tl.sum(weights, axis=0)
    out = tl.load(place, mask=mask, other=0.0).to(tl.float32) / total
    tl.store(out_ptr + row * columns + lanes, out, mask=mask)
