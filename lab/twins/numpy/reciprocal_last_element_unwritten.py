"""reciprocal into memory that the caller gives: blocks of four, and what is left over is not written."""

import numpy as np

PAIR = {"op": "reciprocal", "dtypes": ["float32", "float16"], "checks": ["not_written"]}

WIDTH = 4


def right(input, out):
    """Write 1/x into `out`, the last block however short it is."""
    flat = input.reshape(-1)
    with np.errstate(all="ignore"):
        for first in range(0, flat.size, WIDTH):
            part = slice(first, first + WIDTH)
            out.reshape(-1)[part] = 1 / flat[part].astype(np.float64)
    return out


def wrong(input, out):
    """WRONG: only whole blocks are written."""
    flat = input.reshape(-1)
    with np.errstate(all="ignore"):
        for first in range(0, flat.size - WIDTH + 1, WIDTH):
            part = slice(first, first + WIDTH)
            out.reshape(-1)[part] = 1 / flat[part].astype(np.float64)
    return out
