"""An op of its own: each row less the one before it. The first row has none before it."""

import numpy as np

PAIR = {
    "signature": "x[T,H] -> out[T,H]",
    "dtypes": ["float32", "float16"],
    # One subtraction, rounded once.
    "tolerance": {"float32": (0.0, 1e-6), "float16": (1e-7, 1e-3)},
    "checks": ["value"],
}


def reference(x):
    """Return the differences of rows; a row of zeros stands before the first."""
    return np.diff(x, axis=0, prepend=0.0)


def right(x):
    """Return what the reference does, rounded once."""
    out = x.astype(np.float64)
    with np.errstate(all="ignore"):
        out[1:] -= x[:-1]
        return out.astype(x.dtype)


def wrong(x):
    """WRONG: the last row comes before the first."""
    wide = x.astype(np.float64)
    with np.errstate(all="ignore"):
        return (wide - np.roll(wide, 1, axis=0)).astype(x.dtype)
