"""Memory is read in the order in which it lies, as if every array were contiguous."""

from __future__ import annotations

import numpy as np
from formulas import Array, matmul, narrow, quiet, wide


def _from_start(array: Array) -> Array:
    """Return an array of the elements that lie in the memory of another, as if it were contiguous."""
    memory = array if array.base is None else np.frombuffer(array.base, array.dtype)
    # What is broadcast has fewer elements there than it shows, and is read over and over.
    return np.resize(memory, array.shape)


@quiet
def sub_by_index(input: Array, other: Array) -> Array:
    """Pair elements by their index."""
    return narrow(wide(input) - wide(other), input)


@quiet
def sub_by_memory(input: Array, other: Array) -> Array:
    """WRONG: each operand's rows are read from the start of its memory on, one width after the other."""
    return narrow(wide(_from_start(input)) - wide(_from_start(other)), input)


def matmul_by_strides(a: Array, b: Array) -> Array:
    """Let NumPy look at the strides."""
    return matmul(a, b)


def matmul_of_rows(a: Array, b: Array) -> Array:
    """WRONG: rows are taken to follow each other, and an operand such as `weight.T` has columns there."""
    return matmul(a.ravel(order="K").reshape(a.shape), b.ravel(order="K").reshape(b.shape))
