"""Calls a function of the user with memory that is watched.

The engine makes the memory of every call and looks at it afterwards: a write over an input or past the end
of an output leaves a mark. What only this side can see is reported from here: outputs that lie in the memory
of an input, outputs that change after they were returned, and results that are no arrays.
"""

from __future__ import annotations

import os
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from gpuemu._signature import accepted
from gpuemu.emulation import witnessed
from gpuemu.frameworks.base import BaseAdapter, NotAnArrayError, TensorData

View = tuple[str, npt.NDArray[np.uint8], str, tuple[int, ...], tuple[int, ...], int]
Output = tuple[str, npt.NDArray[np.uint8], str, tuple[int, ...]]
Remark = tuple[str, str, str]

_MOST_FRAMES = 4
_PACKAGE = str(Path(__file__).parent) + os.sep
_MOST_POISONED_BYTES = 1 << 26
_MOST_WATCHED_BYTES = 1 << 24
_WATCHED_OUTPUTS = 3


class Bridge:
    """One function, called again and again."""

    def __init__(
        self,
        function: Callable[..., Any],
        adapter: BaseAdapter,
        out: str | None = None,
        allowed: Sequence[str] = (),
        title: str = "the callable",
        outputs: Sequence[str] = (),
        in_place: Sequence[str] = (),
    ) -> None:
        """Call `function` with arrays of a framework.

        `out` is the keyword by which it takes its outputs, if it does; `allowed` names checks that are not
        made; `title` is what messages call the function, `outputs` what they call its results. Those that
        are `in_place` are inputs as well, which the function may overwrite.
        """
        self.function = function
        self.names = frozenset(accepted(function)["names"])
        self.adapter = adapter
        self.out = out
        self.watches_aliasing = adapter.shares_memory and "aliasing" not in allowed
        self.watches_outputs = out is None and "output_overwritten" not in allowed
        self.title = title
        self.outputs = outputs
        self.in_place = in_place
        self.returned: list[tuple[str, npt.NDArray[Any], bytes]] = []
        self.given: list[tuple[View, Any]] = []

    def __call__(
        self,
        style: str,
        inputs: list[View],
        keywords: dict[str, Any],
        outs: list[View],
        poison: int,
        expected_bytes: int,
    ) -> tuple[str | None, list[Output], list[Remark], list[str]]:
        """Make one call: how it failed, if it did, what came back, what was seen, and what was launched."""
        with witnessed() as launches:
            called = self._call(style, inputs, keywords, outs, poison, expected_bytes)
        return (called, [], [], launches) if isinstance(called, str) else (None, *called, launches)

    def _call(
        self,
        style: str,
        inputs: list[View],
        keywords: dict[str, Any],
        outs: list[View],
        poison: int,
        expected_bytes: int,
    ) -> str | tuple[list[Output], list[Remark]]:
        """Return what came back and what was seen, or as a text how the call failed."""
        adapter = self.adapter
        adapter.prepare([dtype for _, _, dtype, _, _, _ in inputs])
        arrays = self._arrays(inputs)
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
                placed = [name for name in arrays if name not in self.names]
                if list(arrays)[: len(placed)] != placed:
                    # Those with names are not the last ones: only their places say which is which.
                    placed = list(arrays)
                others = {name: value for name, value in arrays.items() if name not in placed}
                result = self.function(*(arrays[name] for name in placed), **others, **keywords)
        except (Exception, SystemExit, GeneratorExit) as error:
            return f"{self.title} raised {_words_of(error)}"
        if self.out is not None:
            return self._written(result, outs)
        try:
            results = self._results(result, arrays)
            named = [(name, adapter.to_numpy(value, self._label(name))) for name, value in results]
        except NotAnArrayError as error:
            return str(error)
        remarks = self._overwritten()
        labelled = [(self._label(name), array) for name, array in named]
        aliasing = _aliasing(labelled, inputs) if adapter.shares_memory else []
        if self.watches_aliasing:
            remarks += [_returned(*pair) for pair in aliasing if not self._is_in_place(*pair)]
        outputs = [(name, _bytes_of(array), array.dtype.name, array.shape) for name, array in named]
        # What lies in an input, where it may, changes with it.
        if self.watches_outputs and not remarks and not aliasing:
            self._remember(labelled, outputs)
        return outputs, remarks

    def _results(self, result: Any, arrays: dict[str, Any]) -> list[tuple[str, Any]]:
        """Return the outputs by name or place.

        What an op writes over its inputs is found there, whatever came back beside it; frameworks whose
        arrays cannot be written return it.
        """
        placed = [name for name in self.in_place if name in arrays] if self.adapter.shares_memory else []
        if not placed:
            return _named(result)
        others = [name for name in self.outputs if name not in placed]
        returned = [] if result is None and not others else _named(result)
        order = self.outputs if len(returned) == len(self.outputs) else others
        names = {str(place): name for place, name in enumerate(order)}
        names["output"] = names.get("0", "output")
        found = {names.get(label, label): value for label, value in returned}
        for name in placed:
            if name in found and not self._same(found[name], arrays[name]):
                raise NotAnArrayError(
                    f"'{name}' came back as another array than the input, which holds something else; the op "
                    "works in place: write its result into the input"
                )
            found[name] = arrays[name]
        # Optional outputs that did not come back are missed elsewhere.
        return [(name, value) for name, value in found.items() if name in self.outputs]

    def _same(self, returned: Any, array: Any) -> bool:
        """Whether what came back for an input that is written in place is what the input holds."""
        left, right = self.adapter.to_numpy(returned, "result"), self.adapter.to_numpy(array, "input")
        return left.shape == right.shape and bool(np.array_equal(_bytes_of(left), _bytes_of(right)))

    def _written(self, result: Any, outs: list[View]) -> str | tuple[list[Output], list[Remark]]:
        """Accept what a function that was given its outputs returned: nothing, or those outputs."""
        if result is None:
            return [], []
        try:
            values = [self.adapter.to_numpy(value, self._label(name)) for name, value in _named(result)]
        except NotAnArrayError as error:
            return str(error)
        ranges = [_range_of(view[1]) for view in outs]
        for array in values:
            low, high = _range_of(array)
            if array.size and not any(start <= low and high <= end for start, end in ranges):
                return (
                    f"{self.title} took `{self.out}=` and returned another array; return that one, or nothing"
                )
        return [], []

    def _is_in_place(self, output: str, input_name: str) -> bool:
        return output == input_name and output in self.in_place

    def _label(self, name: str) -> str:
        """Return what the op calls a result that came back by its place."""
        place = 0 if name == "output" else int(name) if name.isdecimal() else None
        return name if place is None or place >= len(self.outputs) else self.outputs[place]

    def _arrays(self, inputs: list[View]) -> dict[str, Any]:
        """Return the inputs as arrays of the framework.

        Memory of the call before that holds other data now comes as the same objects: what a function kept by
        their identity is stale.
        """
        before = {id(view[1]): (view[2:], array) for view, array in self.given}
        given: list[tuple[View, Any]] = []
        for view in inputs:
            form, array = before.get(id(view[1]), (None, None))
            # Arrays of other frameworks have a state of their own, such as gradients that add up.
            if form != view[2:] or type(array) is not np.ndarray or array.shape != view[3]:
                array = self.adapter.from_tensor_data(TensorData(*view[1:]))
            given.append((view, array))
        self.given = given
        return {view[0]: array for view, array in given}

    def _remember(self, named: list[tuple[str, npt.NDArray[Any]]], outputs: list[Output]) -> None:
        total = sum(array.nbytes for _, array in named)
        if total > _MOST_WATCHED_BYTES:
            return
        # Several calls back: memory may be used in turns.
        self.returned = self.returned[-_WATCHED_OUTPUTS:] + [
            (name, array, data.tobytes())
            for (name, array), (_, data, _, _) in zip(named, outputs, strict=True)
        ]

    def _overwritten(self) -> list[Remark]:
        """Look at what the calls before returned: it must still be what it was."""
        remarks: list[Remark] = []
        for name, array, data in self.returned:
            # Bytes compare in a tenth of the time that arrays of a few elements take.
            if _bytes_of(array).tobytes() != data:
                text = (
                    f"'{name}' of an earlier call changed when the function was called again: every call "
                    "returns the same memory, so a result is lost unless it is copied in time"
                )
                remarks.append(("output_overwritten", name, text))
        if remarks:
            self.returned = []
        return remarks[:1]


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


def _aliasing(named: list[tuple[str, npt.NDArray[Any]]], inputs: list[View]) -> list[tuple[str, str]]:
    """Return the outputs that lie in the memory of inputs, each with the input's name."""
    found: list[tuple[str, str]] = []
    for name, array in named:
        if array.size == 0:
            continue
        low, high = _range_of(array)
        for view in inputs:
            start, end = _range_of(view[1])
            if low < end and start < high:
                found.append((name, view[0]))
    return found


def _returned(output: str, input_name: str) -> Remark:
    text = (
        f"'{output}' lies in the memory of the input '{input_name}': writing to one changes the other, and "
        "an input was returned in place of a result"
    )
    return "aliasing", output, text


def _poison_freed_memory(poison: int, length: int) -> None:
    """Leave poison in memory that the next allocation of that length is likely to get.

    A function that returns memory without writing it would otherwise find there what an earlier call left:
    often the right result.
    """
    if 0 < length <= _MOST_POISONED_BYTES:
        np.empty(length, np.uint8).fill(poison)


def _words_of(error: BaseException) -> str:
    """Describe an exception: its type and message, and where it was raised."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if not frame.filename.startswith(_PACKAGE)][-_MOST_FRAMES:]
    lines = [f"{type(error).__name__}: {error}"]
    lines += [f"  at {frame.filename}:{frame.lineno}, in {frame.name}: {frame.line or ''}" for frame in own]
    return "\n".join(lines)
