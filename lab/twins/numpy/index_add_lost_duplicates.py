"""index_add: rows that share an index are stored one over the other, as without atomics."""

import numpy as np

PAIR = {"op": "index_add", "dtypes": ["float32", "float16"], "checks": ["value"]}


def right(input, index, source, alpha=1.0):
    """Return the input with every row of the source added to the row of its index."""
    out = input.astype(np.float64)
    with np.errstate(all="ignore"):
        np.add.at(out, index, alpha * source.astype(np.float64))
        return out.astype(input.dtype)


def wrong(input, index, source, alpha=1.0):
    """WRONG: of the rows that share an index, the last one counts alone."""
    out = input.astype(np.float64)
    with np.errstate(all="ignore"):
        out[index] += alpha * source.astype(np.float64)
        return out.astype(input.dtype)
