"""Softmax along the last dim, tile by tile with a running maximum, as a GPU kernel computes it."""

import torch

TILE = 64
NOTHING = float("-inf")


def load(input, start, dtype):
    """Load a tile of every row; lanes beyond the end are -inf, so that they add exp(-inf) = 0 to the sum."""
    part = input[..., start : start + TILE].to(dtype)
    return torch.nn.functional.pad(part, (0, TILE - part.shape[-1]), value=NOTHING)


def softmax(input):
    """Return exp(x - max) / sum(exp(x - max)), accumulated in float32 or wider."""
    dtype = torch.promote_types(input.dtype, torch.float32)
    rows = (*input.shape[:-1], 1)
    maximum = torch.full(rows, NOTHING, dtype=dtype, device=input.device)
    total = torch.zeros(rows, dtype=dtype, device=input.device)
    for start in range(0, input.shape[-1], TILE):
        tile = load(input, start, dtype)
        largest = torch.maximum(maximum, tile.amax(-1, keepdim=True))
        # As long as a row had only -inf there is nothing to subtract: -inf - -inf would be NaN.
        shift = largest.masked_fill(largest == NOTHING, 0.0)
        total = total * torch.exp(maximum - shift) + torch.exp(tile - shift).sum(-1, keepdim=True)
        maximum = largest
    return (torch.exp(input.to(dtype) - maximum) / total).to(input.dtype)
