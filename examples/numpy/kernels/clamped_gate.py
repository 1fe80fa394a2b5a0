"""A gate whose input is clamped, so that one outlier cannot drown a row."""

import numpy as np

BLOCK = 256


def clamped_gate(x, gate, limit=1.0):
    """Return gate * clamp(x, -limit, limit), computed in float32 or wider and rounded once."""
    dtype = np.promote_types(x.dtype, np.float32)
    out = np.empty(x.shape, x.dtype)
    with np.errstate(all="ignore"):
        for start in range(0, x.shape[-1], BLOCK):
            columns = slice(start, start + BLOCK)
            clamped = np.clip(x[..., columns].astype(dtype), -limit, limit)
            out[..., columns] = gate[columns].astype(dtype) * clamped
    return out
