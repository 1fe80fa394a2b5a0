"""Gradients that are right where the upstream gradient is 1, as that of a sum is."""

from __future__ import annotations

import numpy as np
from formulas import Array, logistic, narrow, quiet, wide


@quiet
def _slope(input: Array) -> Array:
    values = wide(input)
    return np.asarray(logistic(values) * (1 + values * (1 - logistic(values))))


@quiet
def silu_backward_of_upstream(grad_output: Array, input: Array) -> Array:
    """Multiply by the upstream gradient."""
    return narrow(wide(grad_output) * _slope(input), input)


@quiet
def silu_backward_of_ones(grad_output: Array, input: Array) -> Array:
    """WRONG: the derivative alone."""
    return narrow(_slope(input), input)


@quiet
def softmax_backward_of_upstream(grad_output: Array, output: Array) -> Array:
    """Weigh the upstream gradient in the sum as well."""
    upstream, weights = wide(grad_output), wide(output)
    return narrow(weights * (upstream - (upstream * weights).sum(axis=-1, keepdims=True)), output)


@quiet
def softmax_backward_of_first_upstream(grad_output: Array, output: Array) -> Array:
    """WRONG: one upstream gradient is taken for the whole row, its first."""
    upstream, weights = wide(grad_output[..., :1]), wide(output)
    return narrow(weights * (upstream - (upstream * weights).sum(axis=-1, keepdims=True)), output)
