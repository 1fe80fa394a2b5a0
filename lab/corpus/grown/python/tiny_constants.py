"""Where the true values are tiny, a constant is within the tolerance of most tests."""

from __future__ import annotations

import numpy as np
from formulas import Array, narrow, probabilities, quiet, softmax, wide


def softmax_of_long_rows(input: Array) -> Array:
    """Compute every probability."""
    return softmax(input)


def softmax_uniform(input: Array) -> Array:
    """WRONG: 1/H everywhere. Rows sum to 1, and bell-shaped logits give no element far above that."""
    return np.full(input.shape, 1 / max(input.shape[-1], 1), input.dtype)


def softmax_of_zeros(input: Array) -> Array:
    """WRONG: 0 everywhere, which an absolute tolerance above 1/H cannot tell from the probabilities."""
    return np.zeros(input.shape, input.dtype)


@quiet
def _gradient(input: Array, target: Array, grad_output: Array, softmax_part: Array) -> Array:
    gradient = softmax_part.copy()
    gradient[np.arange(len(target)), target] -= 1
    return narrow(gradient * wide(grad_output)[:, None], input)


def cross_entropy_backward_whole(input: Array, target: Array, grad_output: Array) -> Array:
    """Subtract the target from the probabilities."""
    return _gradient(input, target, grad_output, probabilities(wide(input)))


def cross_entropy_backward_of_targets(input: Array, target: Array, grad_output: Array) -> Array:
    """WRONG: the probabilities of a long row are taken as 0, so only the target's column has a gradient."""
    return _gradient(input, target, grad_output, np.zeros(input.shape))
