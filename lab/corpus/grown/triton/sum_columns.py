"""Sum along the first dim: BLOCK columns a program, ROWS rows at a time."""

import triton
import triton.language as tl


@triton.jit
def sum_columns_split(out_ptr, x_ptr, rows, columns, BLOCK: tl.constexpr, ROWS: tl.constexpr):
    """Partial sums are merged in the output's memory, which the first of them begins."""
    j = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    for start in range(0, rows, ROWS):
        i = start + tl.arange(0, ROWS)
        mask = (i[:, None] < rows) & (j[None, :] < columns)
        x = tl.load(x_ptr + i[:, None].to(tl.int64) * columns + j[None, :], mask, other=0.0)
        before = tl.load(out_ptr + j, (j < columns) & (start > 0), other=0.0)
        tl.store(out_ptr + j, before + tl.sum(x, axis=0), j < columns)


@triton.jit
def sum_columns_uninitialised(out_ptr, x_ptr, rows, columns, BLOCK: tl.constexpr, ROWS: tl.constexpr):
    """WRONG: the first partial sum is merged with what happens to be in the output's memory."""
    j = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    for start in range(0, rows, ROWS):
        i = start + tl.arange(0, ROWS)
        mask = (i[:, None] < rows) & (j[None, :] < columns)
        x = tl.load(x_ptr + i[:, None].to(tl.int64) * columns + j[None, :], mask, other=0.0)
        before = tl.load(out_ptr + j, j < columns, other=0.0)
        tl.store(out_ptr + j, before + tl.sum(x, axis=0), j < columns)
