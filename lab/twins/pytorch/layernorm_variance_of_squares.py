"""Layer norm: the variance as mean of squares less square of mean, which cancels where the mean is large."""

import torch

PAIR = {"op": "layernorm", "dtypes": ["float32"], "values": "shifted", "checks": ["value", "unexpected_nan"]}


def _scaled(centred, variance, weight, bias, eps):
    out = centred / torch.sqrt(variance + eps)
    out = out if weight is None else out * weight
    return out if bias is None else out + bias


def right(input, weight=None, bias=None, eps=1e-5):
    """Return rows with mean 0 and variance 1, by the squares of what is left without the mean."""
    centred = input - input.mean(-1, keepdim=True)
    return _scaled(centred, centred.square().mean(-1, keepdim=True), weight, bias, eps)


def wrong(input, weight=None, bias=None, eps=1e-5):
    """WRONG: two large numbers that are nearly equal are subtracted."""
    mean = input.mean(-1, keepdim=True)
    variance = input.square().mean(-1, keepdim=True) - mean.square()
    return _scaled(input - mean, variance, weight, bias, eps)
