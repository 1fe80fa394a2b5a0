"""NumPy arrays: views over a tensor's memory, with its strides."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from gpuemu.frameworks.base import BaseAdapter, TensorData, type_name


class NumpyAdapter(BaseAdapter):
    """Hands over every tensor as it is: NumPy has all strides, and in-place writes are seen."""

    name = "numpy"
    title = "NumPy"
    accepted = "a numpy.ndarray"
    sees_strides = True
    shares_memory = True

    def __init__(self, device: Any = None) -> None:
        """Take no device other than the CPU."""
        if device not in (None, "cpu"):
            raise ValueError(f"NumPy arrays lie on the CPU, not on device {device!r}")
        super().__init__(device)

    def owns(self, value: Any) -> bool:
        """Whether a value is an array and no subclass of one, or a scalar of NumPy."""
        return type(value) is np.ndarray or _is_scalar(value)

    def from_tensor_data(self, data: TensorData) -> npt.NDArray[Any]:
        """Return a view of the tensor."""
        return data.numpy()

    def to_numpy(self, value: Any, name: str = "output") -> npt.NDArray[Any]:
        """Return the array itself."""
        if type(value) is np.ndarray:
            return self.numbers(value, name)
        if _is_scalar(value):
            # What NumPy itself returns where a reduction leaves no dimension.
            return self.numbers(np.asarray(value), name)
        if isinstance(value, np.ndarray):
            reason = f"is of type {type_name(value)}, a subclass of numpy.ndarray"
            self.refuse(value, name, reason, "numpy.array(…) of it")
        self.refuse(value, name)

    def gradients(
        self, function: Callable[..., Any], inputs: Mapping[str, Any], wanted: Sequence[str], upstream: Any
    ) -> list[Any]:
        """Refuse: NumPy differentiates nothing."""
        raise TypeError("NumPy has no gradients; give the backward pass as a function of its own")


def _is_scalar(value: Any) -> bool:
    # A class that derives from numpy.float64 has numpy.float64 as the type of its dtype.
    return isinstance(value, np.generic) and np.dtype(type(value)).type is type(value)
