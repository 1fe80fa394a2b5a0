"""Functions of ops with several outputs, or that write over their inputs: right ones and wrong ones.

`cheating_ops` says which op of a project each of them is. The first function of each op is its reference.
"""

from __future__ import annotations

from typing import Any

from numpy_kernels import Array

# Two outputs: low[N], high[N].


def halves(x: Array) -> Any:
    """Return both in their order."""
    return x - 1, x + 1


def halves_by_name(x: Array) -> Any:
    """Return both by name."""
    return {"high": x + 1, "low": x - 1}


def halves_swapped(x: Array) -> Any:
    """Return each in the place of the other."""
    return x + 1, x - 1


def halves_misnamed(x: Array) -> Any:
    """Return one by the wrong name."""
    return {"high": x + 1, "lower": x - 1}


# Ops that write over their inputs.


def increment(x: Array) -> Array:
    """Return the input, incremented."""
    return x + 1


def increment_in_place(x: Array) -> Array:
    """Increment the input and return it."""
    x += x.dtype.type(1)
    return x


def increment_without_result(x: Array) -> None:
    """Increment the input."""
    x += x.dtype.type(1)


def increment_elsewhere(x: Array) -> Array:
    """Return an array of its own."""
    result: Array = x + x.dtype.type(1)
    return result


def added(x: Array, y: Array) -> Array:
    """Return the sum, which the op writes over x."""
    return x + y


def added_to_the_other(x: Array, y: Array) -> Array:
    """Write the sum over y."""
    y += x
    return y


def halve(x: Array) -> Array:
    """Return half of the input, which the op writes over it."""
    return x / 2


def halve_in_place(x: Array) -> None:
    """Halve the input."""
    x /= 2


def halve_and_return(x: Array) -> Array:
    """Halve the input and return it."""
    x /= 2
    return x


def halve_first_column(x: Array) -> None:
    """Halve a part of the input."""
    x[..., :1] /= 2


def take(x: Array, y: Array) -> Any:
    """Return the sum, and y for x."""
    return {"out": x + y, "x": y}


def take_without_x(x: Array, y: Array) -> Array:
    """Write y over x, and return the sum alone."""
    total: Array = x + y
    x[:] = y
    return total


def take_both(x: Array, y: Array) -> Any:
    """Write y over x, and return both outputs."""
    total = x + y
    x[:] = y
    return total, x


def take_without_writing(x: Array, y: Array) -> Any:
    """Return a copy of y for x."""
    return x + y, y.copy()
