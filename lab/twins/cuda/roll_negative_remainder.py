"""roll: the remainder of a negative number is taken for a place in the row."""

from functools import cache
from pathlib import Path

import numpy as np

import gpuemu

PAIR = {
    "op": "roll",
    "dtypes": ["float32"],
    "sizes": {"H": (0, 300)},
    "table": {
        "grid": ["max(1, rows(input))"],
        "block": [64],
        "args": ["out", "input", "rows(input)", "H", "shifts"],
    },
    "sanitize": {
        "grid": 4,
        "block": 64,
        "args": ["f32:out:4x100", "f32:random:4x100", "i32:4", "i32:100", "i32:3"],
    },
    "checks": ["out_of_bounds"],
    "classes": ["out_of_bounds"],
}

SOURCE = Path(__file__).with_suffix(".cu")


@cache
def _kernel(entry):
    return gpuemu.cuda.Kernel(SOURCE, entry, outputs=[0])


def _launched(entry, input, shifts):
    out = np.empty(input.shape, input.dtype)
    if out.size:
        columns = input.shape[-1]
        rows = out.size // columns
        _kernel(entry)[rows, 64](out, np.ascontiguousarray(input), rows, columns, shifts)
    return out


def right(input, shifts=1):
    """Return rows whose elements moved to higher indices."""
    return _launched("right", input, shifts)


def wrong(input, shifts=1):
    """WRONG: what leaves at one end does not come in at the other."""
    return _launched("wrong", input, shifts)
