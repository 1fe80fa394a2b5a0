"""Tensors as gpuemu holds them: bytes, and how they are read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from gpuemu._arrays.dtypes import numpy_dtype

ALIGNMENT = 64
"""Bytes. Frameworks take over memory without copying it only where it is aligned to a cache line."""


@dataclass(frozen=True)
class TensorData:
    """A tensor as gpuemu holds it: bytes, and how they are read."""

    memory: npt.NDArray[np.uint8]
    """All bytes that the tensor may lie in, as one dimension."""
    dtype: str
    """The name of the element type, such as `float32` or `bfloat16`."""
    shape: tuple[int, ...]
    """Sizes of the dimensions."""
    strides: tuple[int, ...]
    """Distances between neighbours, in elements."""
    offset: int = 0
    """Where the element at index 0 lies, in elements from the start of `memory`."""

    def numpy(self) -> npt.NDArray[Any]:
        """Return a NumPy view of the elements: no copy, real strides."""
        dtype = numpy_dtype(self.dtype)
        size = dtype.itemsize
        strides = tuple(stride * size for stride in self.strides)
        if 0 in self.shape:
            # There is no element, so the offset may well point behind the memory.
            return np.ndarray(self.shape, dtype, np.empty(0, np.uint8), 0, strides)
        return np.ndarray(self.shape, dtype, self.memory, self.offset * size, strides)

    def is_contiguous(self) -> bool:
        """Whether the elements lie one after the other, in row-major order."""
        return bool(self.numpy().flags.c_contiguous)

    def runs_backwards(self) -> bool:
        """Whether some dimension has a negative stride that matters."""
        pairs = zip(self.strides, self.shape, strict=True)
        return 0 not in self.shape and any(stride < 0 and size > 1 for stride, size in pairs)

    def contiguous(self) -> TensorData:
        """Return a copy in row-major order, in aligned memory of its own."""
        array = self.numpy()
        memory = aligned_memory(array.nbytes)
        copy = np.ndarray(array.shape, array.dtype, memory)
        copy[...] = array
        size = array.dtype.itemsize
        return TensorData(memory, self.dtype, self.shape, tuple(stride // size for stride in copy.strides))


def aligned_memory(size: int) -> npt.NDArray[np.uint8]:
    """Return fresh memory that starts at a multiple of `ALIGNMENT`."""
    memory = np.empty(size + ALIGNMENT, np.uint8)
    start = -memory.ctypes.data % ALIGNMENT
    return memory[start : start + size]


def tensor_data_of(array: npt.NDArray[Any]) -> TensorData:
    """Return a NumPy array as a tensor over the bytes between its first and its last element.

    Nothing is copied, unless its strides are no multiples of its elements.
    """
    size = array.dtype.itemsize
    steps = zip(array.strides, array.shape, strict=True)
    if array.size == 0 or any(stride % size for stride, length in steps if length > 1):
        array = np.array(array, order="C")
    # The stride of a dimension of one element is free: NumPy may leave anything there.
    strides = tuple(stride // size for stride in array.strides)
    if array.size == 0:
        return TensorData(np.empty(0, np.uint8), array.dtype.name, array.shape, strides)
    low, high = np.lib.array_utils.byte_bounds(array)
    # With every backward dimension turned round, the view starts at the lowest byte. The ellipsis keeps an
    # array of no dimensions an array.
    turns: tuple[Any, ...] = (..., *(slice(None, None, -1 if stride < 0 else 1) for stride in strides))
    # `as_strided` does not know every dtype of `ml_dtypes`, but integers of their sizes.
    bits = array.view(f"u{size}")[turns]
    flat = np.lib.stride_tricks.as_strided(bits, ((high - low) // size,), (size,))
    start = (array.ctypes.data - low) // size
    return TensorData(flat.view(np.uint8), array.dtype.name, array.shape, strides, start)
