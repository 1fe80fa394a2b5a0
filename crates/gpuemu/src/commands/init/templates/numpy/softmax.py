"""Softmax along the last dim, tile by tile with a running maximum, as a GPU kernel computes it."""

import numpy as np

TILE = 64


def load(input, start, dtype):
    """Load a tile of every row; lanes beyond the end are -inf, so that they add exp(-inf) = 0 to the sum."""
    part = input[..., start : start + TILE]
    tile = np.full(input.shape[:-1] + (TILE,), -np.inf, dtype)
    tile[..., : part.shape[-1]] = part
    return tile


def softmax(input):
    """Return exp(x - max) / sum(exp(x - max)), accumulated in float32 or wider."""
    dtype = np.promote_types(input.dtype, np.float32)
    maximum = np.full(input.shape[:-1] + (1,), -np.inf, dtype)
    total = np.zeros_like(maximum)
    with np.errstate(all="ignore"):
        for start in range(0, input.shape[-1], TILE):
            tile = load(input, start, dtype)
            largest = np.maximum(maximum, tile.max(-1, keepdims=True))
            # As long as a row had only -inf there is nothing to subtract: -inf - -inf would be NaN.
            shift = np.where(largest == -np.inf, 0, largest)
            total = total * np.exp(maximum - shift) + np.exp(tile - shift).sum(-1, keepdims=True)
            maximum = largest
        return (np.exp(input.astype(dtype) - maximum) / total).astype(input.dtype)
