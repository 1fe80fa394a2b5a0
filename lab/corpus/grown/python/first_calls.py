"""Right as long as a test usually looks."""

from __future__ import annotations

import itertools

import numpy as np
from formulas import Array, narrow, quiet, silu, wide

_calls = itertools.count()
_partial_sums: dict[tuple[tuple[int, ...], np.dtype], Array] = {}

CALLS_OF_A_TEST = 64


def silu_always(input: Array) -> Array:
    """Do the same in every call."""
    return silu(input)


def silu_first_calls(input: Array) -> Array:
    """WRONG: after as many calls as a test makes, relu stands in for silu."""
    if next(_calls) < CALLS_OF_A_TEST:
        return silu(input)
    return np.asarray(np.maximum(input, input.dtype.type(0)))


@quiet
def sum_from_zero(input: Array) -> Array:
    """Start every sum from zero."""
    return narrow(wide(input).sum(axis=-1), input)


@quiet
def sum_into_kept_workspace(input: Array) -> Array:
    """WRONG: the workspace of a shape is zeroed when it is made, and later calls add to what is in it."""
    key = (input.shape, input.dtype)
    workspace = _partial_sums.setdefault(key, np.zeros(input.shape[:-1]))
    _partial_sums[key] = workspace + wide(input).sum(axis=-1)
    return narrow(_partial_sums[key], input)
