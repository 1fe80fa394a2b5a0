"""Numbers that callers give: read leniently, refused with the value that was wrong."""

from __future__ import annotations

import operator
import os
from collections.abc import Sequence
from typing import Any

import numpy as np

_SEEDS = 1 << 64


def whole_number(value: Any, what: str, least: int = 0) -> int:
    """Return a whole number, NumPy's included; what is none, or is too small, is refused."""
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise TypeError(f"{what} is {value!r}; give a whole number")
    number = operator.index(value)
    if number < least:
        raise ValueError(f"{what} is {number}; it must be {least} or more")
    return number


def seed_number(value: Any) -> int:
    """Return a seed."""
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise TypeError(f"the seed {value!r} is not a whole number of 64 bits")
    number = operator.index(value)
    if not 0 <= number < _SEEDS:
        raise ValueError(f"the seed {number} is not a whole number of 64 bits")
    return number


def seed_numbers(values: Any) -> list[int]:
    """Return the seeds of cases: one, several, or none at all."""
    if values is None:
        return []
    if isinstance(values, Sequence | np.ndarray | set | range) and not isinstance(values, str | bytes):
        return [seed_number(value) for value in values]
    return [seed_number(values)]


def json_value(value: Any) -> Any:
    """Return something of Python's that JSON has under another name."""
    if isinstance(value, np.generic) or (isinstance(value, np.ndarray) and value.ndim == 0):
        return value.item()
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    raise TypeError(f"a {type(value).__name__} is neither a number, a text, a list nor a dict")
