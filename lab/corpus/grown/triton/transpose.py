"""A matrix written out with its dims swapped, in square tiles."""

import triton
import triton.language as tl


@triton.jit
def transpose_square_tiles(out_ptr, x_ptr, rows, columns, BLOCK: tl.constexpr):
    """Rows and columns are counted in 64 bits, and so are offsets. Tiles may hang over."""
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)[:, None]
    j = tl.program_id(1).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)[None, :]
    mask = (i < rows) & (j < columns)
    x = tl.load(x_ptr + i * columns + j, mask=mask)
    tl.store(out_ptr + j * rows + i, x, mask=mask)


@triton.jit
def transpose_whole_tiles(out_ptr, x_ptr, rows, columns, BLOCK: tl.constexpr):
    """WRONG: tiles that hang over are left out: the last rows and columns are never written."""
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)[:, None]
    j = tl.program_id(1).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)[None, :]
    if ((tl.program_id(0) + 1) * BLOCK <= rows) & ((tl.program_id(1) + 1) * BLOCK <= columns):
        x = tl.load(x_ptr + i * columns + j)
        tl.store(out_ptr + j * rows + i, x)


@triton.jit
def transpose_int32_offset(out_ptr, x_ptr, rows, columns, BLOCK: tl.constexpr):
    """WRONG: rows and offsets are counted in 32 bits, and wrap in a large matrix."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)[:, None]
    j = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)[None, :]
    mask = (i < rows) & (j < columns)
    x = tl.load(x_ptr + i * columns + j, mask=mask)
    tl.store(out_ptr + j * rows + i, x, mask=mask)
