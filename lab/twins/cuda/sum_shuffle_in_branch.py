"""sum: a shuffle in a branch, whose mask names lanes that do not take it."""

from functools import cache
from pathlib import Path

import numpy as np

import gpuemu

PAIR = {
    "op": "sum",
    "dtypes": ["float32"],
    "sizes": {"H": (0, 70)},
    "table": {"grid": ["max(1, numel(out))"], "block": [32], "args": ["out", "input", "numel(out)", "H"]},
    "sanitize": {"grid": 4, "block": 32, "args": ["f32:out:4", "f32:random:4x20", "i32:4", "i32:20"]},
    "checks": ["synchronisation"],
}

SOURCE = Path(__file__).with_suffix(".cu")


@cache
def _kernel(entry):
    return gpuemu.cuda.Kernel(SOURCE, entry, outputs=[0])


def _launched(entry, input):
    out = np.empty(input.shape[:-1], input.dtype)
    if out.size:
        _kernel(entry)[out.size, 32](out, np.ascontiguousarray(input), out.size, input.shape[-1])
    return out


def right(input):
    """Return the sum of every row."""
    return _launched("right", input)


def wrong(input):
    """WRONG: rows of fewer than 32 columns are not summed as the hardware is promised."""
    return _launched("wrong", input)
