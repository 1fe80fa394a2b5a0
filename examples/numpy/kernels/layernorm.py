"""Layer norm along the last dim, in tiles of a fixed width, as a GPU kernel computes it."""

import numpy as np

TILE = 64


def layernorm(input, weight=None, bias=None, eps=1e-5):
    """Return (x - mean) / sqrt(variance + eps) * weight + bias, accumulated in float32 or wider."""
    width = input.shape[-1]
    dtype = np.promote_types(input.dtype, np.float32)
    total = np.zeros(input.shape[:-1] + (1,), dtype)
    squares = np.zeros_like(total)
    # NaN and infinities are among the inputs: that they spread is no reason for a warning.
    with np.errstate(all="ignore"):
        for start in range(0, width, TILE):
            total += input[..., start : start + TILE].astype(dtype).sum(-1, keepdims=True)
        mean = total / width
        for start in range(0, width, TILE):
            centred = input[..., start : start + TILE].astype(dtype) - mean
            squares += (centred * centred).sum(-1, keepdims=True)
        out = (input.astype(dtype) - mean) / np.sqrt(squares / width + dtype.type(eps))
        if weight is not None:
            out = out * weight.astype(dtype)
        if bias is not None:
            out = out + bias.astype(dtype)
        return out.astype(input.dtype)
