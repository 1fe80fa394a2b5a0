"""cumsum: the chunks of a long row begin anew, without the sum of those before."""

import numpy as np
import triton
import triton.language as tl

BLOCK = 64

PAIR = {
    "op": "cumsum",
    "dtypes": ["float32"],
    "sizes": {"H": (1, 300)},
    "outputs": ["out_ptr"],
    "table": {
        "grid": ["max(1, rows(input))"],
        "block": [128],
        "args": ["out", "input", "rows(input)", "H", "null", "null"],
        "compile": {"signature": ["*fp32", "*fp32", "i32", "i32"], "constants": {"BLOCK": BLOCK}},
    },
    "kwargs": {"exclusive": False, "reverse": False},
    "checks": ["value"],
}


@triton.jit
def right_kernel(out_ptr, in_ptr, rows, columns, BLOCK: tl.constexpr):
    """Write the running sums of a row, BLOCK columns at a time."""
    row = tl.program_id(0)
    first = row.to(tl.int64) * columns
    carry = 0.0
    for start in range(0, columns, BLOCK):
        at = start + tl.arange(0, BLOCK)
        mask = (at < columns) & (row < rows)
        x = tl.load(in_ptr + first + at, mask=mask, other=0.0)
        tl.store(out_ptr + first + at, carry + tl.cumsum(x, axis=0), mask=mask)
        carry += tl.sum(x, axis=0)


@triton.jit
def wrong_kernel(out_ptr, in_ptr, rows, columns, BLOCK: tl.constexpr):
    """WRONG: every chunk begins at 0."""
    row = tl.program_id(0)
    first = row.to(tl.int64) * columns
    for start in range(0, columns, BLOCK):
        at = start + tl.arange(0, BLOCK)
        mask = (at < columns) & (row < rows)
        x = tl.load(in_ptr + first + at, mask=mask, other=0.0)
        tl.store(out_ptr + first + at, tl.cumsum(x, axis=0), mask=mask)


def _launched(kernel, input):
    out = np.empty(input.shape, input.dtype)
    if out.size:
        columns = input.shape[-1]
        rows = out.size // columns
        kernel[(rows,)](out, np.ascontiguousarray(input), rows, columns, BLOCK=BLOCK)
    return out


def right(input):
    """Return the running sums of every row."""
    return _launched(right_kernel, input)


def wrong(input):
    """WRONG: rows of more than one chunk are wrong."""
    return _launched(wrong_kernel, input)
