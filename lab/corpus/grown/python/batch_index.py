"""The first entry of a batch is used for all."""

from __future__ import annotations

import numpy as np
from formulas import Array, matmul, narrow, quiet, wide


def bmm_of_batch(a: Array, b: Array) -> Array:
    """Take each entry's own matrices."""
    return matmul(a, b)


def bmm_of_first_weights(a: Array, b: Array) -> Array:
    """WRONG: the weights of the first entry serve for all, which is right for a batch of one."""
    return matmul(a, b[:1])


@quiet
def _rotated(input: Array, position: Array) -> Array:
    pairs = input.shape[-1] // 2
    frequencies = 10000.0 ** (-np.arange(pairs) / max(pairs, 1))
    angles = wide(position)[:, :, None, None] * frequencies
    low, high = wide(input[..., :pairs]), wide(input[..., pairs:])
    turned = (low * np.cos(angles) - high * np.sin(angles), low * np.sin(angles) + high * np.cos(angles))
    return narrow(np.concatenate(turned, axis=-1), input)


def rope_of_batch(input: Array, position: Array) -> Array:
    """Take each sequence's own positions."""
    return _rotated(input, position)


def rope_of_first_positions(input: Array, position: Array) -> Array:
    """WRONG: all sequences are rotated by the positions of the first: right where none is padded."""
    return _rotated(input, position[:1])
