"""roll: the whole memory is moved in place of each row, so that rows trade their ends."""

import torch

PAIR = {"op": "roll", "dtypes": ["float32", "bfloat16"], "checks": ["value"]}


def right(input, shifts=1):
    """Return rows whose elements moved to higher indices."""
    return torch.roll(input, shifts, -1)


def wrong(input, shifts=1):
    """WRONG: without a dim, torch.roll moves the flattened tensor."""
    return torch.roll(input, shifts)
