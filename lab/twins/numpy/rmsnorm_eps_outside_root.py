"""RMS norm: eps is added to the root in place of the mean square below it."""

import numpy as np

PAIR = {"op": "rmsnorm", "dtypes": ["float32", "float16"], "checks": ["value"]}


def _wide(input, weight):
    rows = input.astype(np.float64)
    factors = 1.0 if weight is None else weight.astype(np.float64)
    return rows, factors


def right(input, weight=None, eps=1e-5):
    """Return x / sqrt(mean(x^2) + eps) * weight."""
    with np.errstate(all="ignore"):
        rows, factors = _wide(input, weight)
        root = np.sqrt((rows * rows).mean(-1, keepdims=True) + eps)
        return (rows / root * factors).astype(input.dtype)


def wrong(input, weight=None, eps=1e-5):
    """WRONG: eps is 1e-5 of the root, where it should be 3e-3 of it: small rows come out too large."""
    with np.errstate(all="ignore"):
        rows, factors = _wide(input, weight)
        root = np.sqrt((rows * rows).mean(-1, keepdims=True)) + eps
        return (rows / root * factors).astype(input.dtype)
