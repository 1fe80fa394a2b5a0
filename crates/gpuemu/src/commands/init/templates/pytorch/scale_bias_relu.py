"""The epilogue of a linear layer in one pass: scale, add the bias, cut off below zero."""

import torch

BLOCK = 256


def scale_bias_relu(x, bias, scale=1.0):
    """Return max(x * scale + bias, 0), computed in float32 or wider and rounded once."""
    dtype = torch.promote_types(x.dtype, torch.float32)
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    for start in range(0, x.shape[-1], BLOCK):
        columns = slice(start, start + BLOCK)
        sums = x[..., columns].to(dtype) * scale + bias[columns].to(dtype)
        # NaN is not below zero: it stays.
        out[..., columns] = sums.masked_fill(sums < 0, 0.0).to(x.dtype)
    return out
