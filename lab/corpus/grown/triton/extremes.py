"""Largest element, smallest element and product along the last dim: one program a row."""

import triton
import triton.language as tl


@triton.jit
def multiplied(left, right):
    """Combine two partial products."""
    return left * right


@triton.jit
def max_of_rows(out_ptr, x_ptr, columns, BLOCK: tl.constexpr):
    """NaN is skipped: lanes beyond the row are NaN, and so is a row of nothing else."""
    row = tl.program_id(0).to(tl.int64)
    lanes = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * columns + lanes, mask=lanes < columns, other=float("nan")).to(tl.float32)
    tl.store(out_ptr + row, tl.max(x, axis=0))


@triton.jit
def max_lanes_of_zero(out_ptr, x_ptr, columns, BLOCK: tl.constexpr):
    """WRONG: lanes beyond the row are 0, which is more than a negative row has."""
    row = tl.program_id(0).to(tl.int64)
    lanes = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * columns + lanes, mask=lanes < columns, other=0.0).to(tl.float32)
    tl.store(out_ptr + row, tl.max(x, axis=0))


@triton.jit
def min_of_rows(out_ptr, x_ptr, columns, BLOCK: tl.constexpr):
    """NaN is skipped: lanes beyond the row are NaN, and so is a row of nothing else."""
    row = tl.program_id(0).to(tl.int64)
    lanes = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * columns + lanes, mask=lanes < columns, other=float("nan")).to(tl.float32)
    tl.store(out_ptr + row, tl.min(x, axis=0))


@triton.jit
def min_lanes_of_zero(out_ptr, x_ptr, columns, BLOCK: tl.constexpr):
    """WRONG: lanes beyond the row are 0, which is less than a positive row has."""
    row = tl.program_id(0).to(tl.int64)
    lanes = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * columns + lanes, mask=lanes < columns, other=0.0).to(tl.float32)
    tl.store(out_ptr + row, tl.min(x, axis=0))


@triton.jit
def prod_of_rows(out_ptr, x_ptr, columns, BLOCK: tl.constexpr):
    """Lanes beyond the row are 1."""
    row = tl.program_id(0).to(tl.int64)
    lanes = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * columns + lanes, mask=lanes < columns, other=1.0).to(tl.float32)
    tl.store(out_ptr + row, tl.reduce(x, 0, multiplied))


@triton.jit
def prod_lanes_of_zero(out_ptr, x_ptr, columns, BLOCK: tl.constexpr):
    """WRONG: lanes beyond the row are 0, and so is every product."""
    row = tl.program_id(0).to(tl.int64)
    lanes = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * columns + lanes, mask=lanes < columns, other=0.0).to(tl.float32)
    tl.store(out_ptr + row, tl.reduce(x, 0, multiplied))
