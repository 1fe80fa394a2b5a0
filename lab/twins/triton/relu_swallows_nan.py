"""relu: tl.maximum prefers a number to NaN unless it is told otherwise."""

import numpy as np
import triton
import triton.language as tl

BLOCK = 128

PAIR = {
    "op": "relu",
    "dtypes": ["float32"],
    "outputs": ["out_ptr"],
    "table": {
        "grid": ["max(1, ceil_div(numel(out), 128))"],
        "block": [128],
        "args": ["out", "input", "numel(out)", "null", "null"],
        "compile": {"signature": ["*fp32", "*fp32", "i32"], "constants": {"BLOCK": BLOCK}},
    },
    "checks": ["missing_nan"],
    "classes": ["special_values"],
}


@triton.jit
def right_kernel(out_ptr, in_ptr, count, BLOCK: tl.constexpr):
    """Write the larger of x and 0, and NaN for NaN."""
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(in_ptr + at, mask=at < count)
    tl.store(out_ptr + at, tl.maximum(x, 0.0, propagate_nan=tl.PropagateNan.ALL), mask=at < count)


@triton.jit
def wrong_kernel(out_ptr, in_ptr, count, BLOCK: tl.constexpr):
    """WRONG: write 0 for NaN."""
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(in_ptr + at, mask=at < count)
    tl.store(out_ptr + at, tl.maximum(x, 0.0), mask=at < count)


def _launched(kernel, input):
    out = np.empty(input.shape, input.dtype)
    if out.size:
        kernel[(triton.cdiv(out.size, BLOCK),)](out, np.ascontiguousarray(input), out.size, BLOCK=BLOCK)
    return out


def right(input):
    """Return the larger of every element and 0."""
    return _launched(right_kernel, input)


def wrong(input):
    """WRONG: NaN is lost."""
    return _launched(wrong_kernel, input)
