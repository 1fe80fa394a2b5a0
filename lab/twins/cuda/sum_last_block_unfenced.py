"""sum: blocks hand over their parts without a fence."""

from functools import cache
from pathlib import Path

import numpy as np

import gpuemu

PAIR = {
    "op": "sum",
    "dtypes": ["float32"],
    "sizes": {"H": (1, 70)},
    "table": {"grid": [4, "max(1, numel(out))"], "block": [1], "args": ["out", "input", "numel(out)", "H"]},
    "sanitize": {"grid": "4,4", "block": 1, "args": ["f32:out:4", "f32:random:4x20", "i32:4", "i32:20"]},
    "checks": ["race"],
}

SOURCE = Path(__file__).with_suffix(".cu")


@cache
def _kernel(entry):
    return gpuemu.cuda.Kernel(SOURCE, entry, outputs=[0])


def _launched(entry, input):
    out = np.empty(input.shape[:-1], input.dtype)
    if out.size:
        _kernel(entry)[(4, out.size), 1](out, np.ascontiguousarray(input), out.size, input.shape[-1])
    return out


def right(input):
    """Return the sum of every row."""
    return _launched("right", input)


def wrong(input):
    """WRONG: on a chip, some sums lack a part now and then."""
    return _launched("wrong", input)
