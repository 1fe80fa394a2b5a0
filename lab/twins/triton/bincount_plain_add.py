"""bincount: programs count into the same memory by load, add and store."""

import numpy as np
import triton
import triton.language as tl

BLOCK = 128

PAIR = {
    "op": "bincount",
    "sizes": {"N": (0, 600)},
    "sanitize": {
        "grid": 3,
        "block": 128,
        "args": ["i64:inout:zeros:16", "i64:below16:300", "i32:300", "ptr:null", "ptr:null"],
        "compile": {"signature": ["*i64", "*i64", "i32"], "constants": {"BLOCK": BLOCK}},
    },
    "checks": ["race"],
    "classes": ["race"],
}


@triton.jit
def right_kernel(out_ptr, in_ptr, count, BLOCK: tl.constexpr):
    """Add 1 to the count of every number, atomically."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    number = tl.load(in_ptr + at, mask=at < count, other=0)
    tl.atomic_add(out_ptr + number, tl.full([BLOCK], 1, tl.int64), mask=at < count)


@triton.jit
def wrong_kernel(out_ptr, in_ptr, count, BLOCK: tl.constexpr):
    """WRONG: of two that count the same number at once, one is lost."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    number = tl.load(in_ptr + at, mask=at < count, other=0)
    before = tl.load(out_ptr + number, mask=at < count, other=0)
    tl.store(out_ptr + number, before + 1, mask=at < count)


def _launched(kernel, input, minlength):
    out = np.zeros(minlength, np.int64)
    if input.size:
        kernel[(triton.cdiv(input.size, BLOCK),)](out, np.ascontiguousarray(input), input.size, BLOCK=BLOCK)
    return out


def right(input, minlength=16):
    """Return how often each number occurs."""
    return _launched(right_kernel, input, minlength)


def wrong(input, minlength=16):
    """WRONG: counts are too small."""
    return _launched(wrong_kernel, input, minlength)
