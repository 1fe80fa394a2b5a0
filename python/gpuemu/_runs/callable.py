"""Calls a function of the user with memory that is watched.

The engine makes the memory of every call and looks at it afterwards: a write over an input or past the end
of an output leaves a mark. What only this side can see is reported from here: what the watched memory tells,
launches in the PTX machine, and results that are no arrays.
"""

from __future__ import annotations

import json
import os
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from gpuemu._launches.watched_kernel import WatchedKernel
from gpuemu._runs.signature import accepted
from gpuemu._runs.watched_memory import WatchedMemory
from gpuemu.emulation import witnessed
from gpuemu.frameworks.base import BaseAdapter, NotAnArrayError, TensorData

View = tuple[str, npt.NDArray[np.uint8], str, tuple[int, ...], tuple[int, ...], int]
Output = tuple[str, npt.NDArray[np.uint8], str, tuple[int, ...]]
Seen = dict[str, Any]

_MOST_FRAMES = 4
_PACKAGE = str(Path(__file__).parents[1]) + os.sep


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
        kernel: WatchedKernel | None = None,
    ) -> None:
        """Call `function` with arrays of a framework.

        `out` is the keyword by which it takes its outputs, if it does; `allowed` names checks that are not
        made; `title` is what messages call the function, `outputs` what they call its results. Those that
        are `in_place` are inputs as well, which the function may overwrite. `kernel` is what every call has
        to run.
        """
        self.function = function
        self.names = frozenset(accepted(function)["names"])
        self.adapter = adapter
        self.out = out
        self.allowed = frozenset(allowed)
        self.memory = WatchedMemory(np, adapter.shares_memory)
        self.title = title
        self.outputs = outputs
        self.in_place = in_place
        self.kernel = kernel
        self.given: list[tuple[View, Any]] = []

    def __call__(
        self,
        style: str,
        inputs: list[View],
        keywords: dict[str, Any],
        outs: list[View],
        poison: int,
        expected_bytes: list[int],
    ) -> tuple[str | None, list[Output], str, list[str]]:
        """Make one call: how it failed, if it did, what came back, what was seen, and what was launched."""
        with witnessed() as launches:
            called = self._call(style, inputs, keywords, outs, poison, expected_bytes)
        if isinstance(called, str):
            return called, [], "", launches
        outputs, seen = called
        if self.kernel is not None:
            seen += self.kernel.seen(expected_bytes)
        seen = [one for one in seen if one["check"] not in self.allowed]
        return None, outputs, json.dumps(seen) if seen else "", launches

    def _call(
        self,
        style: str,
        inputs: list[View],
        keywords: dict[str, Any],
        outs: list[View],
        poison: int,
        expected_bytes: list[int],
    ) -> str | tuple[list[Output], list[Seen]]:
        """Return what came back and what was seen, or as a text how the call failed."""
        adapter = self.adapter
        adapter.prepare([dtype for _, _, dtype, _, _, _ in inputs])
        arrays = self._arrays(inputs)
        if self.out is not None and outs:
            made = [adapter.out_array(TensorData(*view[1:])) for view in outs]
            keywords[self.out] = self.memory.out_argument(made)
        self.memory.poison(poison, expected_bytes)
        if self.kernel is not None:
            self.kernel.forget()
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
            return self._written(result, outs, self.out)
        try:
            results = self._results(result, arrays)
            named = [(name, adapter.to_numpy(value, self._label(name))) for name, value in results]
        except (NotAnArrayError, ValueError) as error:
            return str(error)
        given = [(view[0], view[1]) for view in inputs]
        seen = self.memory.seen(given, [(self._label(name), array, array.tobytes()) for name, array in named])
        return [(name, _bytes_of(array), array.dtype.name, array.shape) for name, array in named], seen

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
        # Optional outputs that did not come back are missed elsewhere.
        return self.memory.written_in_place(returned, list(self.outputs), placed, arrays, self._same)

    def _same(self, returned: Any, array: Any) -> bool:
        """Whether what came back for an input that is written in place is what the input holds."""
        left, right = self.adapter.to_numpy(returned, "result"), self.adapter.to_numpy(array, "input")
        return left.shape == right.shape and left.tobytes() == right.tobytes()

    def _written(self, result: Any, outs: list[View], keyword: str) -> str | tuple[list[Output], list[Seen]]:
        """Accept what a function that was given its outputs returned: nothing, or those outputs."""
        if result is None:
            return [], []
        try:
            values = [self.adapter.to_numpy(value, self._label(name)) for name, value in _named(result)]
        except NotAnArrayError as error:
            return str(error)
        strays = self.memory.strays(values, [view[1] for view in outs], keyword)
        return ([], []) if strays is None else f"{self.title} {strays}"

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


def _words_of(error: BaseException) -> str:
    """Describe an exception: its type and message, and where it was raised."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if not frame.filename.startswith(_PACKAGE)][-_MOST_FRAMES:]
    lines = [f"{type(error).__name__}: {error}"]
    lines += [f"  at {frame.filename}:{frame.lineno}, in {frame.name}: {frame.line or ''}" for frame in own]
    return "\n".join(lines)
