"""The epilogue of a linear layer in one pass: scale, add the bias, cut off below zero."""

import numpy as np

BLOCK = 256


def scale_bias_relu(x, bias, scale=1.0):
    """Return max(x * scale + bias, 0), computed in float32 or wider and rounded once."""
    dtype = np.promote_types(x.dtype, np.float32)
    out = np.empty(x.shape, x.dtype)
    with np.errstate(all="ignore"):
        for start in range(0, x.shape[-1], BLOCK):
            columns = slice(start, start + BLOCK)
            sums = x[..., columns].astype(dtype) * scale + bias[columns].astype(dtype)
            # NaN is not below zero: it stays.
            out[..., columns] = np.where(sums < 0, 0, sums)
    return out
