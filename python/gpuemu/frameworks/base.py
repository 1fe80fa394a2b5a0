"""What gpuemu needs of a framework's arrays."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from gpuemu._dtypes import numpy_dtype


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
        if 0 in self.shape:
            return np.empty(self.shape, dtype)
        size = dtype.itemsize
        strides = [stride * size for stride in self.strides]
        return np.ndarray(self.shape, dtype, self.memory, self.offset * size, strides)  # type: ignore[arg-type]


class NotAnArrayError(TypeError):
    """What a callable returned is no array of the framework that it was given arrays of."""


class BaseAdapter(ABC):
    """Converts between gpuemu's tensors and the arrays of a framework."""

    name: ClassVar[str]
    """How the framework is called in messages and in `framework=…`."""
    sees_strides: ClassVar[bool]
    """Whether a function that is given an array can see its strides."""
    shares_memory: ClassVar[bool]
    """Whether writing into an array from `from_tensor_data` writes into the tensor's memory."""

    @abstractmethod
    def from_tensor_data(self, data: TensorData) -> Any:
        """Return an array of the framework over a tensor: no copy where the framework allows."""

    @abstractmethod
    def to_numpy(self, value: Any, name: str = "output") -> npt.NDArray[Any]:
        """Return the elements of an array of the framework, strides kept and without a copy where possible.

        Waits until the array is computed and fetches it from its device. Anything that is not exactly an
        array of the framework is refused with `NotAnArrayError`: a list, a lazy object or a subclass that
        computes when it is looked at must not stand in for a result.
        """

    def to_tensor_data(self, value: Any, name: str = "output") -> TensorData:
        """Return an array of the framework as gpuemu holds tensors, its strides kept."""
        array = self.to_numpy(value, name)
        size = max(array.dtype.itemsize, 1)
        if any(stride % size for stride in array.strides):
            array = np.ascontiguousarray(array)
        if array.size == 0:
            strides = tuple(stride // size for stride in np.empty(array.shape, array.dtype).strides)
            return TensorData(np.empty(0, np.uint8), array.dtype.name, array.shape, strides)
        low, high = np.lib.array_utils.byte_bounds(array)
        flat = np.lib.stride_tricks.as_strided(
            array[tuple(0 if step >= 0 else size_ - 1 for step, size_ in zip(array.strides, array.shape, strict=True))],
            (high - low) // size,
            (size,),
        )
        start = array.__array_interface__["data"][0] - low
        strides = tuple(stride // size for stride in array.strides)
        return TensorData(flat.view(np.uint8), array.dtype.name, array.shape, strides, start // size)

    def prepare(self, dtypes: Sequence[str]) -> None:
        """Get ready for a call with inputs of these dtypes, where a global setting depends on them."""

    @abstractmethod
    def gradients(
        self, function: Callable[..., Any], inputs: Mapping[str, Any], wanted: Sequence[str], upstream: Any
    ) -> list[Any]:
        """Return the gradients of some inputs.

        `function` takes the inputs by name and returns one array or a sequence of them; `upstream` is the
        gradient of each output, in the same form.
        """
