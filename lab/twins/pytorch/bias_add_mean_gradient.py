"""The gradient of a bias is the mean over the rows in place of the sum."""

import torch

PAIR = {"op": "bias_add", "dtypes": ["float32"], "backward": True, "checks": ["value"]}


def _rows(upstream):
    # Of no elements `reshape` cannot tell how many rows there are; a row of zeros has the same sum.
    columns = upstream.shape[-1]
    return upstream.reshape(-1, columns) if upstream.numel() else upstream.new_zeros(1, columns)


class _Sum(torch.autograd.Function):
    @staticmethod
    def forward(context, input, bias):
        return input + bias

    @staticmethod
    def backward(context, upstream):
        return upstream, _rows(upstream).sum(0)


class _Mean(torch.autograd.Function):
    @staticmethod
    def forward(context, input, bias):
        return input + bias

    @staticmethod
    def backward(context, upstream):
        return upstream, _rows(upstream).mean(0)


def right(input, bias):
    """Return the sum; every row adds to the gradient of the bias."""
    return _Sum.apply(input, bias)


def wrong(input, bias):
    """WRONG: the gradient of the bias does not grow with the batch."""
    return _Mean.apply(input, bias)
