"""Rows of a table by index: one program an index, BLOCK columns at a time."""

import triton
import triton.language as tl


@triton.jit
def embedding_strided(out_ptr, index_ptr, table_ptr, columns, table_row, table_column, BLOCK: tl.constexpr):
    """Rows of the table begin `table_row` elements apart, however wide they are."""
    place = tl.program_id(0).to(tl.int64)
    index = tl.load(index_ptr + place)
    for start in range(0, columns, BLOCK):
        lanes = start + tl.arange(0, BLOCK)
        mask = lanes < columns
        values = tl.load(table_ptr + index * table_row + lanes * table_column, mask=mask)
        tl.store(out_ptr + place * columns + lanes, values, mask=mask)


@triton.jit
def embedding_row_is_width(
    out_ptr, index_ptr, table_ptr, columns, table_row, table_column, BLOCK: tl.constexpr
):
    """WRONG: rows of the table are taken to begin as far apart as they are wide."""
    place = tl.program_id(0).to(tl.int64)
    index = tl.load(index_ptr + place)
    for start in range(0, columns, BLOCK):
        lanes = start + tl.arange(0, BLOCK)
        mask = lanes < columns
        values = tl.load(table_ptr + index * columns + lanes * table_column, mask=mask)
        tl.store(out_ptr + place * columns + lanes, values, mask=mask)


@triton.jit
def embedding_packed(out_ptr, index_ptr, table_ptr, columns, BLOCK: tl.constexpr):
    """Of a table without gaps. Where a row begins is computed in 64 bits."""
    place = tl.program_id(0).to(tl.int64)
    index = tl.load(index_ptr + place)
    for start in range(0, columns, BLOCK):
        lanes = start + tl.arange(0, BLOCK)
        mask = lanes < columns
        values = tl.load(table_ptr + index * columns + lanes, mask=mask)
        tl.store(out_ptr + place * columns + lanes, values, mask=mask)


@triton.jit
def embedding_int32_offset(out_ptr, index_ptr, table_ptr, columns, BLOCK: tl.constexpr):
    """WRONG: where a row of the table begins is computed in 32 bits, and wraps in a large table."""
    place = tl.program_id(0).to(tl.int64)
    index = tl.load(index_ptr + place).to(tl.int32)
    for start in range(0, columns, BLOCK):
        lanes = start + tl.arange(0, BLOCK)
        mask = lanes < columns
        values = tl.load(table_ptr + index * columns + lanes, mask=mask)
        tl.store(out_ptr + place * columns + lanes, values, mask=mask)
