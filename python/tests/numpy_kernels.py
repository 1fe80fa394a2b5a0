"""Kernels in NumPy that tests try: right ones, and one wrong in a known way."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]


def relu(input: Array) -> Array:
    """Return a right relu."""
    return np.maximum(input, input.dtype.type(0))


def softmax(input: Array) -> Array:
    """Return a right softmax."""
    wide = input.astype(np.float64)
    with np.errstate(all="ignore"):
        powers = np.exp(wide - wide.max(axis=-1, keepdims=True, initial=-np.inf))
        result: Array = (powers / powers.sum(axis=-1, keepdims=True)).astype(input.dtype)
    return result


def matmul(a: Array, b: Array) -> Array:
    """Return a right product."""
    result: Array = (a.astype(np.float64) @ b.astype(np.float64)).astype(a.dtype)
    return result


def padded_softmax(input: Array) -> Array:
    """Return a softmax whose rows are padded to a multiple of 4 by zeros in place of minus infinity."""
    missing = -input.shape[-1] % 4
    padded = np.concatenate([input, np.zeros((*input.shape[:-1], missing), input.dtype)], axis=-1)
    return np.ascontiguousarray(softmax(padded)[..., : input.shape[-1]])
