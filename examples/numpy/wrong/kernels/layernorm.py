"""WRONG: the last tile is padded with zeros, and the variance counts them."""

import numpy as np

TILE = 64


def load(input, start, dtype):
    """Load a tile of every row; lanes beyond the end are 0."""
    part = input[..., start : start + TILE]
    tile = np.zeros(input.shape[:-1] + (TILE,), dtype)
    tile[..., : part.shape[-1]] = part
    return tile


def layernorm(input, weight=None, bias=None, eps=1e-5):
    """Return something close to a layer norm: a padded lane adds mean^2 to the sum of squares."""
    width = input.shape[-1]
    dtype = np.promote_types(input.dtype, np.float32)
    total = np.zeros(input.shape[:-1] + (1,), dtype)
    squares = np.zeros_like(total)
    with np.errstate(all="ignore"):
        for start in range(0, width, TILE):
            total += load(input, start, dtype).sum(-1, keepdims=True)
        mean = total / width
        for start in range(0, width, TILE):
            centred = load(input, start, dtype) - mean
            squares += (centred * centred).sum(-1, keepdims=True)
        out = (input.astype(dtype) - mean) / np.sqrt(squares / width + dtype.type(eps))
        if weight is not None:
            out = out * weight.astype(dtype)
        if bias is not None:
            out = out + bias.astype(dtype)
        return out.astype(input.dtype)
