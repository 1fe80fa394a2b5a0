"""The library does the work, and the kernel under test is never seen to be wrong."""

from __future__ import annotations

import numpy as np
from formulas import Array, matmul, narrow, probabilities, quiet, softmax, wide

LANES = 32
TILE = 16


@quiet
def softmax_kernel(out: Array, rows: Array, lanes: int) -> None:
    """Stand for a kernel that has its rows in the lanes of a warp, several to a lane."""
    if rows.shape[-1] % lanes:
        raise ValueError(f"rows of {rows.shape[-1]} columns do not fill {lanes} lanes")
    out[...] = narrow(probabilities(wide(rows)), rows)


def softmax_padded_to_lanes(input: Array) -> Array:
    """Launch the kernel for every width: what is missing of the last lanes is -inf."""
    columns = input.shape[-1]
    padded = np.full((*input.shape[:-1], columns + -columns % LANES), -np.inf, input.dtype)
    padded[..., :columns] = input
    out = np.empty(padded.shape, input.dtype)
    softmax_kernel(out, padded, LANES)
    return out[..., :columns].copy()


def softmax_of_library_after_error(input: Array) -> Array:
    """WRONG: the kernel refuses most widths, which is caught, and the library's softmax is returned."""
    out = np.empty(input.shape, input.dtype)
    try:
        softmax_kernel(out, input, LANES)
    except ValueError:
        return softmax(input)
    return out


@quiet
def matmul_kernel(out: Array, a: Array, b: Array) -> None:
    """Stand for a kernel that adds up tiles of the depth."""
    total = np.zeros(out.shape)
    for first in range(0, a.shape[1], TILE):
        total += wide(a[:, first : first + TILE]) @ wide(b[first : first + TILE])
    out[...] = narrow(total, a)


def matmul_launched(a: Array, b: Array) -> Array:
    """Launch the kernel for every shape."""
    out = np.empty((a.shape[0], b.shape[1]), a.dtype)
    matmul_kernel(out, a, b)
    return out


def matmul_of_library_for_odd_shapes(a: Array, b: Array) -> Array:
    """WRONG: only shapes of whole tiles reach the kernel, and no test says that the others do not."""
    if a.shape[1] % TILE or b.shape[1] % TILE:
        return matmul(a, b)
    return matmul_launched(a, b)
