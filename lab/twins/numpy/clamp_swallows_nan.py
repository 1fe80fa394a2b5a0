"""clamp: minimum and maximum that prefer a number to NaN, as fminf and fmaxf do."""

import numpy as np

PAIR = {
    "op": "clamp",
    "dtypes": ["float32", "float16"],
    "checks": ["missing_nan"],
    "classes": ["special_values"],
}


def right(input, min=-1.0, max=1.0):
    """Return elements limited to a range; NaN stays NaN."""
    with np.errstate(all="ignore"):
        limited = np.minimum(np.maximum(input.astype(np.float64), min), max)
        return limited.astype(input.dtype)


def wrong(input, min=-1.0, max=1.0):
    """WRONG: NaN becomes the lower limit."""
    with np.errstate(all="ignore"):
        limited = np.fmin(np.fmax(input.astype(np.float64), min), max)
        return limited.astype(input.dtype)
