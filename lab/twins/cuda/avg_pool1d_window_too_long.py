"""avg_pool1d: `<=` in place of `<` at the end of a window."""

from functools import cache
from pathlib import Path

import numpy as np

import gpuemu

PAIR = {
    "op": "avg_pool1d",
    "dtypes": ["float32"],
    "sizes": {"N": (0, 4), "C": (0, 4), "L": (5, 100)},
    "kwargs": {"count_include_pad": True},
    "table": {
        "grid": ["max(1, ceil_div(numel(out), 64))"],
        "block": [64],
        "args": ["out", "input", "N * C", "L", "size(out, 2)", "kernel_size", "stride", "padding"],
    },
    "sanitize": {
        "grid": 4,
        "block": 64,
        "args": ["f32:out:6x40", "f32:random:6x80", "i32:6", "i32:80", "i32:40", "i32:2", "i32:2", "i32:0"],
    },
    "checks": ["out_of_bounds", "value"],
}

SOURCE = Path(__file__).with_suffix(".cu")


@cache
def _kernel(entry):
    return gpuemu.cuda.Kernel(SOURCE, entry, outputs=[0])


def _launched(entry, input, size, stride, padding):
    samples, channels, length = input.shape
    windows = (length + 2 * padding - size) // stride + 1
    out = np.empty((samples, channels, windows), input.dtype)
    if out.size:
        numbers = samples * channels, length, windows, size, stride, padding
        _kernel(entry)[-(-out.size // 64), 64](out, np.ascontiguousarray(input), *numbers)
    return out


def right(input, kernel_size=2, stride=2, padding=0):
    """Return the mean of each window."""
    return _launched("right", input, kernel_size, stride, padding)


def wrong(input, kernel_size=2, stride=2, padding=0):
    """WRONG: one element too many is in each sum."""
    return _launched("wrong", input, kernel_size, stride, padding)
