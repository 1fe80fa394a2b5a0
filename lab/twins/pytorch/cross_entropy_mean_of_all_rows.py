"""Mean cross entropy: the sum is divided by all rows, those that are ignored included."""

import torch

PAIR = {"op": "cross_entropy_mean", "dtypes": ["float32", "float16"], "checks": ["value", "missing_nan"]}


def _losses(input, target, label_smoothing, ignore_index):
    logits = input.double()
    counted = target != ignore_index
    # A target that is ignored is no column.
    columns = torch.where(counted, target, 0).unsqueeze(-1)
    logs = torch.log_softmax(logits, -1)
    losses = -(1 - label_smoothing) * logs.gather(-1, columns).squeeze(-1)
    if label_smoothing:
        losses = losses - label_smoothing * logs.mean(-1)
    return torch.where(counted, losses, 0.0), counted


def right(input, target, label_smoothing=0.0, ignore_index=-100):
    """Return the mean over the rows that count; NaN where there is none."""
    losses, counted = _losses(input, target, label_smoothing, ignore_index)
    return (losses.sum() / counted.sum()).to(input.dtype)


def wrong(input, target, label_smoothing=0.0, ignore_index=-100):
    """WRONG: rows without a target make the loss smaller."""
    losses, _ = _losses(input, target, label_smoothing, ignore_index)
    return (losses.sum() / losses.numel()).to(input.dtype)
