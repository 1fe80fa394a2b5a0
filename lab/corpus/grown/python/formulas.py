"""The arithmetic of the pairs, in float64 and rounded once. Twins differ in what they do around it."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

quiet = np.errstate(all="ignore")
"""NaN and infinities among the inputs are no reason for a warning."""


def wide(array: Array) -> Array:
    """Return the numbers in float64."""
    return array.astype(np.float64)


@quiet
def narrow(values: Array, like: Array) -> Array:
    """Return the numbers in the dtype of an input."""
    return np.asarray(values).astype(like.dtype)


@quiet
def probabilities(logits: Array) -> Array:
    """Return the softmax of rows of float64."""
    powers = np.exp(logits - logits.max(axis=-1, keepdims=True, initial=-np.inf))
    return np.asarray(powers / powers.sum(axis=-1, keepdims=True))


def softmax(input: Array) -> Array:
    """Return the softmax of rows."""
    return narrow(probabilities(wide(input)), input)


@quiet
def layernorm(input: Array) -> Array:
    """Return rows with mean 0 and variance 1."""
    rows = wide(input)
    centred = rows - rows.mean(axis=-1, keepdims=True)
    return narrow(centred / np.sqrt((centred**2).mean(axis=-1, keepdims=True) + 1e-5), input)


@quiet
def rmsnorm(input: Array) -> Array:
    """Return rows divided by their root mean square."""
    rows = wide(input)
    return narrow(rows / np.sqrt((rows**2).mean(axis=-1, keepdims=True) + 1e-5), input)


@quiet
def l2norm(input: Array) -> Array:
    """Return rows divided by their length."""
    rows = wide(input)
    return narrow(rows / np.sqrt((rows**2).sum(axis=-1, keepdims=True) + 1e-12), input)


@quiet
def matmul(a: Array, b: Array) -> Array:
    """Return the product of two matrices, or of two stacks of them."""
    return narrow(wide(a) @ wide(b), a)


@quiet
def logistic(values: Array) -> Array:
    """Return the sigmoid of float64."""
    return np.asarray(1 / (1 + np.exp(-values)))


@quiet
def silu(input: Array) -> Array:
    """Return x*sigmoid(x)."""
    return narrow(wide(input) * logistic(wide(input)), input)


def sigmoid(input: Array) -> Array:
    """Return the sigmoid."""
    return narrow(logistic(wide(input)), input)


@quiet
def tanh(input: Array) -> Array:
    """Return the hyperbolic tangent."""
    return narrow(np.tanh(wide(input)), input)
