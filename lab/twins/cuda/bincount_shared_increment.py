"""bincount: threads count into shared memory without atomics."""

from functools import cache
from pathlib import Path

import numpy as np

import gpuemu

PAIR = {
    "op": "bincount",
    "sizes": {"N": (0, 600)},
    "table": {"grid": [1], "block": [128], "args": ["out", "input", "N", "minlength"]},
    "sanitize": {"grid": 1, "block": 128, "args": ["i64:out:16", "i64:below16:300", "i32:300", "i32:16"]},
    "checks": ["race"],
    "classes": ["race"],
}

SOURCE = Path(__file__).with_suffix(".cu")


@cache
def _kernel(entry):
    return gpuemu.cuda.Kernel(SOURCE, entry, outputs=[0])


def _launched(entry, input, minlength):
    out = np.empty(minlength, np.int64)
    _kernel(entry)[1, 128](out, np.ascontiguousarray(input), input.size, minlength)
    return out


def right(input, minlength=16):
    """Return how often each number occurs."""
    return _launched("right", input, minlength)


def wrong(input, minlength=16):
    """WRONG: counts are too small."""
    return _launched("wrong", input, minlength)
