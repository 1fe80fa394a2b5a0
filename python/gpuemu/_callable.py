"""Calls a function of the user with memory that is watched.

The engine makes the memory of every call and looks at it afterwards: a write over an input or past the end of
an output leaves a mark. What only this side can see is reported from here: outputs that lie in the memory of an
input, outputs that change after they were returned, and results that are no arrays.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from gpuemu.frameworks.base import BaseAdapter, NotAnArrayError, TensorData

View = tuple[str, npt.NDArray[np.uint8], str, tuple[int, ...], tuple[int, ...], int]
Output = tuple[str, npt.NDArray[np.uint8], str, tuple[int, ...]]
Remark = tuple[str, str, str]

_MOST_FRAMES = 4
_MOST_POISONED_BYTES = 1 << 26
_MOST_WATCHED_BYTES = 1 << 24


class Bridge:
    """One function, called again and again."""

    def __init__(
        self,
        function: Callable[..., Any],
        adapter: BaseAdapter,
        out: str | None = None,
        allowed: Sequence[str] = (),
    ) -> None:
        """Call `function` with arrays of a framework.

        `out` is the keyword by which it takes its outputs, if it does; `allowed` names checks that are not made.
        """
        self.function = function
        self.adapter = adapter
        self.out = out
        self.watches_aliasing = adapter.shares_memory and "aliasing" not in allowed
        self.watches_outputs = out is None and "output_overwritten" not in allowed
        self.returned: list[tuple[str, npt.NDArray[Any], npt.NDArray[np.uint8]]] = []

    def __call__(
        self,
        style: str,
        inputs: list[View],
        keywords: dict[str, Any],
        outs: list[View],
        poison: int,
        expected_bytes: int,
    ) -> str | tuple[list[Output], list[Remark]]:
        """Make one call: what came back and what was seen, or as a text how it failed."""
        adapter = self.adapter
        adapter.prepare([dtype for _, _, dtype, _, _, _ in inputs])
        arrays = {view[0]: adapter.from_tensor_data(TensorData(*view[1:])) for view in inputs}
        if self.out is not None and outs:
            made = tuple(adapter.out_array(TensorData(*view[1:])) for view in outs)
            keywords[self.out] = made[0] if len(made) == 1 else made
        _poison_freed_memory(poison, expected_bytes)
        try:
            if style == "keywords":
                result = self.function(**arrays, **keywords)
            elif style == "dictionary":
                result = self.function(arrays, **keywords)
            else:
                result = self.function(*arrays.values(), **keywords)
        except Exception as error:
            return f"the callable raised {_words_of(error)}"
        if self.out is not None:
            return [], []
        try:
            named = [(name, adapter.to_numpy(value, name)) for name, value in _named(result)]
        except NotAnArrayError as error:
            return str(error)
        remarks = self._overwritten()
        if self.watches_aliasing:
            remarks += _aliasing(named, inputs)
        outputs = [(name, _bytes_of(array), array.dtype.name, array.shape) for name, array in named]
        if self.watches_outputs and not remarks:
            self._remember(named, outputs)
        return outputs, remarks

    def _remember(self, named: list[tuple[str, npt.NDArray[Any]]], outputs: list[Output]) -> None:
        total = sum(array.nbytes for _, array in named)
        if total > _MOST_WATCHED_BYTES:
            return
        self.returned = [
            (name, array, data.copy()) for (name, array), (_, data, _, _) in zip(named, outputs, strict=True)
        ]

    def _overwritten(self) -> list[Remark]:
        """Look at what the call before returned: it must still be what it was."""
        remarks: list[Remark] = []
        for name, array, data in self.returned:
            if not np.array_equal(_bytes_of(array), data):
                text = (
                    f"'{name}' of an earlier call changed when the function was called again: every call "
                    "returns the same memory, so a result is lost unless it is copied in time"
                )
                remarks.append(("output_overwritten", name, text))
        self.returned = []
        return remarks


def _named(result: Any) -> list[tuple[str, Any]]:
    if isinstance(result, dict):
        return [(str(name), value) for name, value in result.items()]
    if isinstance(result, tuple):
        return [(str(index), value) for index, value in enumerate(result)]
    return [("output", result)]


def _bytes_of(array: npt.NDArray[Any]) -> npt.NDArray[np.uint8]:
    if array.dtype.byteorder == ">":
        array = array.astype(array.dtype.newbyteorder("<"))
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8)


def _range_of(array: npt.NDArray[Any]) -> tuple[int, int]:
    if array.flags.c_contiguous:
        start: int = array.__array_interface__["data"][0]
        return start, start + array.nbytes
    return np.lib.array_utils.byte_bounds(array)


def _aliasing(named: list[tuple[str, npt.NDArray[Any]]], inputs: list[View]) -> list[Remark]:
    remarks: list[Remark] = []
    for name, array in named:
        if array.size == 0:
            continue
        low, high = _range_of(array)
        for view in inputs:
            start, end = _range_of(view[1])
            if low < end and start < high:
                text = (
                    f"'{name}' lies in the memory of the input '{view[0]}': writing to one changes the other, and "
                    "an input was returned in place of a result"
                )
                remarks.append(("aliasing", name, text))
    return remarks


def _poison_freed_memory(poison: int, length: int) -> None:
    """Leave poison in memory that the next allocation of that length is likely to get.

    A function that returns memory without writing it would otherwise find there what an earlier call left: often
    the right result.
    """
    if 0 < length <= _MOST_POISONED_BYTES:
        np.empty(length, np.uint8).fill(poison)


def _words_of(error: Exception) -> str:
    """Describe an exception: its type and message, and where it was raised."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if frame.filename != __file__][-_MOST_FRAMES:]
    lines = [f"{type(error).__name__}: {error}"]
    lines += [f"  at {frame.filename}:{frame.lineno}, in {frame.name}: {frame.line or ''}" for frame in own]
    return "\n".join(lines)
