"""Tensors of messages: arrays of any framework on their way to the daemon, NumPy arrays on their way back."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from gpuemu._arrays.dtypes import DTYPES

if TYPE_CHECKING:
    from gpuemu._native import SharedSegment
    from gpuemu.frameworks.base import TensorData

Bytes = npt.NDArray[np.uint8]

ALIGNMENT = 64
"""Tensors lie at multiples of so many bytes in the payload of a message."""

_NO_BYTES: Bytes = np.empty(0, np.uint8)

_LARGEST_EXPANSION = 256 << 20
"""Bytes that the daemon lets a tensor stand for although fewer were sent."""

_NOT_ARRAYS = (
    list,
    tuple,
    dict,
    set,
    bool,
    int,
    float,
    complex,
    str,
    bytes,
    bytearray,
    type(None),
)


class Outgoing:
    """The tensors of one request: first described, then put where the daemon finds them."""

    def __init__(self) -> None:
        """Begin without tensors."""
        self._tensors: list[tuple[dict[str, Any], Bytes]] = []

    def add(self, value: Any, name: str) -> dict[str, Any]:
        """Return the JSON of an array, which says where its bytes are once they are placed."""
        data = tensor_data(value, name)
        described: dict[str, Any] = {"dtype": data.dtype, "shape": list(data.shape)}
        if data.strides != contiguous_strides(data.shape):
            described["strides"] = list(data.strides)
        if data.offset:
            described["offset"] = data.offset
        self._tensors.append((described, data.memory))
        return described

    def add_named(self, values: Any, what: str) -> dict[str, Any]:
        """Return the JSON of arrays by name."""
        if not isinstance(values, Mapping):
            kind = type(values).__name__
            raise TypeError(f"{what} is a {kind}; pass a dict of arrays by name")
        return {str(name): self.add(value, f"{what}['{name}']") for name, value in values.items()}

    @property
    def size(self) -> int:
        """Bytes of all tensors."""
        return sum(memory.nbytes for _, memory in self._tensors)

    def place_shared(self, segment: SharedSegment) -> None:
        """Put the bytes into shared memory; `OSError` where there is no room."""
        for described, memory in self._tensors:
            name, offset, length = segment.share(memory)
            described["shared"] = {"name": name, "offset": offset, "length": length}

    def place_behind(self) -> list[Bytes]:
        """Let the bytes travel behind the request, and return them in order."""
        end = 0
        for described, memory in self._tensors:
            start = -(-end // ALIGNMENT) * ALIGNMENT
            end = start + memory.nbytes
            described.pop("shared", None)
            described["binary"] = {"offset": start, "length": memory.nbytes}
        return [memory for _, memory in self._tensors]


def tensor_data(value: Any, name: str) -> TensorData:
    """Return an array of any framework as gpuemu holds tensors."""
    # What NumPy returns where no dimension is left; its float64 is a float of Python's as well.
    if isinstance(value, _NOT_ARRAYS) and not isinstance(value, np.generic):
        kind = "None" if value is None else f"a {type(value).__name__}"
        raise TypeError(f"{name} is {kind}; pass an array of NumPy, PyTorch, JAX or TensorFlow")
    if type(value) not in (np.ndarray, np.memmap):
        from gpuemu.frameworks import adapter_for

        value = adapter_for(value).to_numpy(value, name)
    array: npt.NDArray[Any] = value
    if not array.dtype.isnative:
        array = array.astype(array.dtype.newbyteorder("="))
    if array.dtype.name not in DTYPES:
        raise TypeError(f"{name} has dtype {array.dtype.name}; known dtypes: {', '.join(DTYPES)}")
    return _laid_out(array)


def _laid_out(array: npt.NDArray[Any]) -> TensorData:
    from gpuemu.frameworks.tensor_data import TensorData, tensor_data_of

    data = tensor_data_of(array)
    extent = data.memory.nbytes
    # Gaps travel with the array, so that the daemon sees the strides that a kernel saw; large ones are not
    # worth it.
    sparse = extent > 2 * array.nbytes + 4096 or array.nbytes > max(extent, _LARGEST_EXPANSION)
    if not sparse and not array.flags.c_contiguous:
        return data
    if sparse:
        data = tensor_data_of(np.ascontiguousarray(array))
    # NumPy leaves anything in the strides of dimensions of one element.
    return TensorData(data.memory, data.dtype, array.shape, contiguous_strides(array.shape), data.offset)


def contiguous_strides(shape: Sequence[int]) -> tuple[int, ...]:
    """Return the strides, in elements, of an array without gaps."""
    strides = [1] * len(shape)
    for axis in range(len(shape) - 2, -1, -1):
        strides[axis] = strides[axis + 1] * shape[axis + 1]
    return tuple(strides)


def read_tensor(value: Any, payload: Bytes = _NO_BYTES) -> npt.NDArray[Any]:
    """Return the NumPy array of a tensor of an answer, with the strides that it was sent with."""
    from gpuemu.frameworks.base import TensorData

    if isinstance(value, np.ndarray):
        return value
    if "binary" in value:
        start, length = value["binary"]["offset"], value["binary"]["length"]
        memory = payload[start : start + length]
    else:
        memory = np.frombuffer(bytearray(base64.b64decode(value["data"])), np.uint8)
    shape = tuple(value["shape"])
    strides = tuple(value.get("strides") or contiguous_strides(shape))
    return TensorData(memory, value["dtype"], shape, strides, value.get("offset", 0)).numpy()


def read_tensors(values: Mapping[str, Any], payload: Bytes = _NO_BYTES) -> dict[str, npt.NDArray[Any]]:
    """Return the NumPy arrays of tensors by name."""
    return {name: read_tensor(value, payload) for name, value in values.items()}


def tensors_as_text(values: Mapping[str, npt.NDArray[Any]]) -> dict[str, Any]:
    """Return arrays as JSON alone can say them: contiguous, in base64."""
    written = {}
    for name, array in values.items():
        data = base64.b64encode(np.ascontiguousarray(array).tobytes()).decode()
        written[name] = {"dtype": array.dtype.name, "shape": list(array.shape), "data": data}
    return written
