"""Tensors in every layout that gpuemu draws, and their elements in row-major order."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from gpuemu._arrays.dtypes import numpy_dtype
from gpuemu.frameworks import TensorData

LAYOUTS: dict[str, tuple[tuple[int, ...], tuple[int, ...], int]] = {
    "contiguous": ((3, 4), (4, 1), 0),
    "transposed": ((3, 4), (1, 3), 0),
    "row gap": ((3, 4), (7, 1), 0),
    "column step": ((3, 4), (8, 2), 0),
    "backwards": ((3, 4), (-4, -1), 11),
    "rows backwards, with a gap": ((3, 4), (-6, 1), 15),
    "broadcast rows": ((3, 4), (0, 1), 0),
    "broadcast element": ((3, 4), (0, 0), 2),
    "offset": ((3, 4), (4, 1), 5),
    "one row, its stride negative": ((1, 4), (-9, 1), 2),
    "no dimensions": ((), (), 3),
    "empty": ((0, 4), (4, 1), 0),
    "empty, transposed": ((3, 0), (1, 3), 0),
}
"""Shape, strides and offset of each layout, in elements."""


@dataclass(frozen=True)
class Sample:
    """A tensor, and its elements in row-major order."""

    data: TensorData
    expected: npt.NDArray[Any]


def sample(dtype: str, layout: str) -> Sample:
    """Return a tensor of known bits in memory that is larger than it needs to be."""
    shape, strides, offset = LAYOUTS[layout]
    size = numpy_dtype(dtype).itemsize
    # Three elements more than the last one, and some bytes that are no whole element.
    memory = np.arange(40 * size + size // 2, dtype=np.uint8)
    if dtype == "bool":
        memory %= 2
    elements = memory[: 40 * size].view(numpy_dtype(dtype))
    expected = np.empty(shape, elements.dtype)
    for index in np.ndindex(shape):
        place = offset + sum(step * at for step, at in zip(strides, index, strict=True))
        expected[index] = elements[place]
    return Sample(TensorData(memory, dtype, shape, strides, offset), expected)


def numbers(values: Any, dtype: str = "float32") -> TensorData:
    """Return numbers as a contiguous tensor."""
    array = np.array(values, numpy_dtype(dtype), order="C")
    strides = tuple(stride // array.itemsize for stride in array.strides)
    memory = np.frombuffer(bytearray(array.tobytes()), np.uint8)
    return TensorData(memory, dtype, array.shape, strides)


def same_bits(left: npt.NDArray[Any], right: npt.NDArray[Any]) -> bool:
    """Whether two arrays have the same dtype, shape and bits, NaNs included."""
    return left.dtype == right.dtype and left.shape == right.shape and left.tobytes() == right.tobytes()
