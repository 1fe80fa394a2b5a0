"""What gpuemu needs of a framework's arrays."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, ClassVar, NoReturn

import numpy as np
import numpy.typing as npt

from gpuemu._arrays.dtypes import DTYPES
from gpuemu.frameworks.tensor_data import TensorData, tensor_data_of

__all__ = ["BaseAdapter", "NotAnArrayError", "NotConnectedError", "TensorData", "type_name"]


class NotAnArrayError(TypeError):
    """What a callable returned is no array of the framework that it was given arrays of."""


class NotConnectedError(ValueError):
    """No gradient flows from an output to any of the inputs whose gradients are asked for."""


class BaseAdapter(ABC):
    """Converts between gpuemu's tensors and the arrays of a framework."""

    name: ClassVar[str]
    """How the framework is called in `framework=…`."""
    title: ClassVar[str]
    """How the framework is called in messages."""
    accepted: ClassVar[str]
    """What counts as an array of the framework, in words."""
    sees_strides: ClassVar[bool]
    """Whether a function that is given an array can see its strides."""
    shares_memory: ClassVar[bool]
    """Whether writing into an array from `from_tensor_data` writes into the tensor's memory.

    That is what the framework can do; `aliases` says whether one tensor can have it.
    """

    def __init__(self, device: Any = None) -> None:
        """Put arrays on a device of the framework: by default where it puts those of NumPy."""
        self.device = device

    @abstractmethod
    def owns(self, value: Any) -> bool:
        """Whether a value is exactly an array of the framework, by its type alone."""

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

    @abstractmethod
    def gradients(
        self, function: Callable[..., Any], inputs: Mapping[str, Any], wanted: Sequence[str], upstream: Any
    ) -> list[Any]:
        """Return the gradients of some inputs, in the order in which they are named.

        `function` takes the inputs by name and returns one array or a sequence of them; `upstream` is the
        gradient of each output, in the same form, or None for an output that is left out. An input that no
        output depends on has the gradient zero; an output that depends on no wanted input is refused with
        `NotConnectedError`.
        """

    def aliases(self, data: TensorData) -> bool:
        """Whether the array from `from_tensor_data` lies in the memory of this tensor.

        Where it does not, neither a store out of bounds nor an input overwritten can be seen there.
        """
        return self.shares_memory

    def keeps_strides(self, data: TensorData) -> bool:
        """Whether the array from `from_tensor_data` has the strides of this tensor."""
        return self.sees_strides or data.is_contiguous()

    def out_array(self, data: TensorData) -> Any:
        """Return an array for an argument `out=`: what is written into it is written into the tensor.

        `TypeError` where there is no such array.
        """
        if not self.shares_memory:
            raise TypeError(f"{self.title} arrays cannot be written in place, so there is no `out=` to fill")
        if not data.memory.flags.writeable:
            raise TypeError("an array for `out=` needs memory that can be written")
        if not self.aliases(data):
            raise TypeError(
                f"an array for `out=` must lie in gpuemu's memory; {self.title} on device "
                f"{self.device or 'cpu'} cannot have one with strides {data.strides} there"
            )
        return self.from_tensor_data(data)

    def to_tensor_data(self, value: Any, name: str = "output") -> TensorData:
        """Return an array of the framework as gpuemu holds tensors: no copy, strides kept where possible."""
        array = self.to_numpy(value, name)
        if array.dtype.name not in DTYPES:
            known = ", ".join(DTYPES)
            raise TypeError(
                f"output {name!r} has the dtype {array.dtype.name}, which gpuemu lacks; known dtypes: {known}"
            )
        return tensor_data_of(array)

    def snapshot(self, value: Any) -> Any:
        """Return a copy of an array that no later write into the original changes."""
        data = self.to_tensor_data(value)
        memory = data.memory.copy()
        return self.from_tensor_data(TensorData(memory, data.dtype, data.shape, data.strides, data.offset))

    def prepare(self, dtypes: Sequence[str]) -> None:  # noqa: B027 (most frameworks need nothing)
        """Get ready for a call with inputs of these dtypes, where a setting depends on them."""

    def session(self) -> AbstractContextManager[None]:
        """Return a context in which calls are made; at its end, the user's settings are as before."""
        return nullcontext()

    def refuse(self, value: Any, name: str, reason: str | None = None, remedy: str | None = None) -> NoReturn:
        """Refuse something that was returned in place of an array."""
        what = reason or f"is of type {type_name(value)}"
        raise NotAnArrayError(
            f"output {name!r} {what}, not a result that can be judged; return {remedy or self.accepted}"
        )

    def numbers(self, array: npt.NDArray[Any], name: str) -> npt.NDArray[Any]:
        """Return an array of numbers in this machine's byte order, or refuse one of other things."""
        dtype = array.dtype
        if dtype.hasobject or dtype.kind in "SUTmM" or dtype.type is np.void:
            self.refuse(array, name, f"has the dtype {dtype}", f"{self.accepted}, of numbers")
        return array if dtype.isnative else array.astype(dtype.newbyteorder("="))


def type_name(value: Any) -> str:
    """Return the full name of a value's type, as it would be written in a program."""
    kind = type(value)
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"
