"""add in tiles of rows and columns, by strides: rows are masked by the number of columns."""

import numpy as np
import triton
import triton.language as tl

PAIR = {
    "signature": "x[M,N] y[M,N] -> out[M,N]",
    "dtypes": ["float32"],
    "tolerance": {"float32": (0.0, 1e-6)},
    "sizes": {"M": (0, 40), "N": (0, 80)},
    "outputs": ["out_ptr"],
    "checks": ["out_of_bounds"],
}


def reference(x, y):
    """Return the sum."""
    return x + y


@triton.autotune(
    configs=[triton.Config({"ROWS": 4, "COLUMNS": 32}), triton.Config({"ROWS": 8, "COLUMNS": 16})], key=[]
)
@triton.jit
def right_kernel(
    out_ptr,
    x_ptr,
    y_ptr,
    rows,
    columns,
    x_row,
    x_column,
    y_row,
    y_column,
    ROWS: tl.constexpr,
    COLUMNS: tl.constexpr,
):
    """Write the sum of a tile, in tiles of two sizes."""
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)[:, None]
    column = tl.program_id(1).to(tl.int64) * COLUMNS + tl.arange(0, COLUMNS)[None, :]
    mask = (row < rows) & (column < columns)
    x = tl.load(x_ptr + row * x_row + column * x_column, mask=mask)
    y = tl.load(y_ptr + row * y_row + column * y_column, mask=mask)
    tl.store(out_ptr + row * columns + column, x + y, mask=mask)


@triton.autotune(
    configs=[triton.Config({"ROWS": 4, "COLUMNS": 32}), triton.Config({"ROWS": 8, "COLUMNS": 16})], key=[]
)
@triton.jit
def wrong_kernel(
    out_ptr,
    x_ptr,
    y_ptr,
    rows,
    columns,
    x_row,
    x_column,
    y_row,
    y_column,
    ROWS: tl.constexpr,
    COLUMNS: tl.constexpr,
):
    """WRONG: of a matrix with more columns than rows, rows that do not exist are written."""
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)[:, None]
    column = tl.program_id(1).to(tl.int64) * COLUMNS + tl.arange(0, COLUMNS)[None, :]
    mask = (row < columns) & (column < columns)
    x = tl.load(x_ptr + row * x_row + column * x_column, mask=mask)
    y = tl.load(y_ptr + row * y_row + column * y_column, mask=mask)
    tl.store(out_ptr + row * columns + column, x + y, mask=mask)


def _launched(kernel, x, y):
    rows, columns = x.shape
    out = np.empty((rows, columns), x.dtype)
    if out.size:
        strides = [stride // array.itemsize for array in (x, y) for stride in array.strides]

        def grid(tile):
            return triton.cdiv(rows, tile["ROWS"]), triton.cdiv(columns, tile["COLUMNS"])

        kernel[grid](out, x, y, rows, columns, *strides)
    return out


def right(x, y):
    """Return the sum of two matrices, however they lie in memory."""
    return _launched(right_kernel, x, y)


def wrong(x, y):
    """WRONG: the last tile is wrong."""
    return _launched(wrong_kernel, x, y)
