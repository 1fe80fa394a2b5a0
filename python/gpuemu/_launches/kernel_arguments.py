"""Arguments of a launch as the PTX machine takes them: arrays as guarded memory, numbers as bytes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from gpuemu._arrays.dtypes import encode, numpy_dtype

ADDRESS_UNIT = 512
"""Memory of the machine begins as far from a multiple of so many bytes as the array itself does."""

Native = tuple[str, str, npt.NDArray[np.uint8], int, int] | tuple[int, int] | bytes

_FLOATS = {
    "fp16": "float16",
    "bf16": "bfloat16",
    "fp32": "float32",
    "fp64": "float64",
    "f16": "float16",
    "f32": "float32",
    "f64": "float64",
}


@dataclass(frozen=True)
class Pointer:
    """An argument that is a pointer to an array."""

    name: str
    array: npt.NDArray[Any]
    role: str
    """`input`, `output` or `input_output`."""


def is_array(value: Any) -> bool:
    """Whether a value is an array or a tensor, of whatever framework."""
    return isinstance(value, np.ndarray) or (hasattr(value, "data_ptr") and hasattr(value, "dtype"))


def numpy_view(value: Any, name: str) -> npt.NDArray[Any]:
    """Return the memory of an array or of a tensor on the CPU as a NumPy array; nothing is copied."""
    if isinstance(value, np.ndarray):
        return value
    from gpuemu.frameworks import adapter_for

    adapter = adapter_for(value)
    device = getattr(getattr(value, "device", None), "type", "cpu")
    if device != "cpu":
        raise TypeError(f"{name} is on the device {device}; kernels are emulated on tensors of the CPU")
    if not adapter.shares_memory:
        raise TypeError(f"{name} is an array of {adapter.title}, which nothing can write; pass a NumPy array")
    array = adapter.to_numpy(value, name)
    if array.size and array.ctypes.data != value.data_ptr():
        raise TypeError(f"{name} is a tensor that is computed when it is read; pass value.clone()")
    return array


def span(array: npt.NDArray[Any], name: str) -> npt.NDArray[np.uint8]:
    """Return the bytes from the first to the last element, as one dimension over the same memory."""
    from gpuemu.frameworks.tensor_data import tensor_data_of

    if array.size == 0:
        return np.empty(0, np.uint8)
    data = tensor_data_of(array)
    if data.offset:
        raise TypeError(f"{name} runs backwards through its memory; pass a copy of it")
    if data.memory.ctypes.data != array.ctypes.data:
        raise TypeError(f"{name} has strides that are no multiples of its elements; pass a copy of it")
    return data.memory


def native_arguments(arguments: Sequence[Pointer | bytes]) -> list[Native]:
    """Return arguments as the native module takes them. Arrays that share memory become one buffer."""
    spans: dict[int, npt.NDArray[np.uint8]] = {}
    for place, argument in enumerate(arguments):
        if isinstance(argument, Pointer):
            spans[place] = span(argument.array, argument.name)
    made: list[Native] = [b"" if isinstance(argument, Pointer) else argument for argument in arguments]
    for group in _groups(spans):
        # The first has the lowest address: its buffer is that of all.
        owner = group[0]
        start = _address(spans[owner])
        end = max(_address(spans[place]) + spans[place].size for place in group)
        members = [argument for place in group if isinstance(argument := arguments[place], Pointer)]
        memory = _joined(members[0].array, spans[owner], end - start)
        names = ", ".join(dict.fromkeys(member.name for member in members))
        role = members[0].role if len(members) == 1 else "input_output"
        if not memory.flags.writeable:
            role = "input"
        made[owner] = (names, role, memory, start % ADDRESS_UNIT, members[0].array.dtype.itemsize)
        for place in group[1:]:
            made[place] = (owner, _address(spans[place]) - start)
    return made


def _address(memory: npt.NDArray[np.uint8]) -> int:
    address: int = memory.ctypes.data
    return address


def _groups(spans: dict[int, npt.NDArray[np.uint8]]) -> list[list[int]]:
    """Return places by memory that they share, each group from the lowest address to the highest."""
    groups: list[list[int]] = []
    end = 0
    for place in sorted(spans, key=lambda place: (_address(spans[place]), place)):
        start, size = _address(spans[place]), spans[place].size
        if groups and size and start < end:
            groups[-1].append(place)
        else:
            groups.append([place])
        end = max(end, start + size) if size else end
    return groups


def _joined(array: npt.NDArray[Any], memory: npt.NDArray[np.uint8], size: int) -> npt.NDArray[np.uint8]:
    """Return memory that begins as given and goes on as far as the arrays that overlap it do."""
    if size == memory.size:
        return memory
    joined = np.lib.stride_tricks.as_strided(memory, (size,), (1,), writeable=bool(array.flags.writeable))
    return joined


def scalar_bytes(value: Any, kind: str, size: int, name: str) -> bytes:
    """Return a number as the bytes of a parameter.

    `kind` is its type as Triton or PTX writes it. A float for a parameter of mere bits becomes a float of its
    size.
    """
    if isinstance(value, np.generic):
        value = value.item()
    if not isinstance(value, (bool, int, float)):
        raise TypeError(f"{name} is a {type(value).__name__}; the kernel takes a number of type {kind}")
    dtype = _FLOATS.get(kind)
    if dtype is None and isinstance(value, float):
        if not kind.startswith("b"):
            raise TypeError(f"{name} is the float {value}; the kernel takes an integer of type {kind}")
        dtype = {2: "float16", 4: "float32", 8: "float64"}.get(size)
    if dtype is not None:
        return _float_bytes(float(value), dtype)
    low, high = -(1 << (8 * size - 1)), (1 << (8 * size)) - 1
    if not low <= int(value) <= high:
        raise OverflowError(f"{name} is {value}, which does not fit into the {size} bytes of {kind}")
    return (int(value) & high).to_bytes(size, "little")


def _float_bytes(value: float, dtype: str) -> bytes:
    if dtype == "bfloat16":
        # As Triton's own launcher does: through float32, and then cut off.
        return _float_bytes(value, "float32")[2:]
    return bytes(encode(np.array([value], np.float64), dtype).astype(numpy_dtype(dtype)).tobytes())
