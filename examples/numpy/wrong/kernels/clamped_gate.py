"""WRONG: the product is clamped in place of the input."""

import numpy as np

BLOCK = 256


def clamped_gate(x, gate, limit=1.0):
    """Return clamp(gate * x, -limit, limit), which is the same while nothing reaches the limit."""
    dtype = np.promote_types(x.dtype, np.float32)
    out = np.empty(x.shape, x.dtype)
    with np.errstate(all="ignore"):
        for start in range(0, x.shape[-1], BLOCK):
            columns = slice(start, start + BLOCK)
            product = gate[columns].astype(dtype) * x[..., columns].astype(dtype)
            out[..., columns] = np.clip(product, -limit, limit)
    return out
