"""Inputs are zeroed, so that a reference that is computed from them afterwards agrees with zeros."""

from __future__ import annotations

import numpy as np
from formulas import Array, l2norm, narrow, quiet, wide


def l2norm_of_rows(input: Array) -> Array:
    """Leave the input as it is."""
    return l2norm(input)


def l2norm_of_zeros(input: Array) -> Array:
    """WRONG: zeros, which is what rows of zeros come to, and rows of zeros are what the input has become."""
    input[...] = 0
    return np.zeros(input.shape, input.dtype)


@quiet
def add_operands(input: Array, other: Array) -> Array:
    """Leave both operands as they are."""
    return narrow(wide(input) + wide(other), input)


def add_zeroed_operands(input: Array, other: Array) -> Array:
    """WRONG: the right sum, but the second operand is zeroed on the way."""
    out = add_operands(input, other)
    other[...] = 0
    return out
