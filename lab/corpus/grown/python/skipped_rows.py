"""Loops over blocks of rows that leave rows out."""

from __future__ import annotations

import math

import numpy as np
from formulas import Array, layernorm

ROWS_OF_A_BLOCK = 4


def _rows(shape: tuple[int, ...]) -> tuple[int, int]:
    return math.prod(shape[:-1]), shape[-1]


def layernorm_all_blocks(input: Array) -> Array:
    """Count the last, partial block."""
    out = np.empty(input.shape, input.dtype)
    source, target = input.reshape(_rows(input.shape)), out.reshape(_rows(input.shape))
    for first in range(0, len(source), ROWS_OF_A_BLOCK):
        block = slice(first, first + ROWS_OF_A_BLOCK)
        target[block] = layernorm(source[block])
    return out


def layernorm_whole_blocks(input: Array) -> Array:
    """WRONG: the number of blocks is rounded down, so up to three rows are never written."""
    out = np.empty(input.shape, input.dtype)
    source, target = input.reshape(_rows(input.shape)), out.reshape(_rows(input.shape))
    for number in range(len(source) // ROWS_OF_A_BLOCK):
        block = slice(number * ROWS_OF_A_BLOCK, (number + 1) * ROWS_OF_A_BLOCK)
        target[block] = layernorm(source[block])
    return out


def embedding_all_rows(indices: Array, weight: Array) -> Array:
    """Copy a row for every index."""
    out = np.empty((*indices.shape, weight.shape[1]), weight.dtype)
    target = out.reshape(indices.size, weight.shape[1])
    for row, index in enumerate(indices.reshape(-1)):
        target[row] = weight[index]
    return out


def embedding_skips_padding(indices: Array, weight: Array) -> Array:
    """WRONG: index 0 is taken for padding, and its rows are left as they were allocated."""
    out = np.empty((*indices.shape, weight.shape[1]), weight.dtype)
    target = out.reshape(indices.size, weight.shape[1])
    for row, index in enumerate(indices.reshape(-1)):
        if index != 0:
            target[row] = weight[index]
    return out
