"""One op, one callable, many cases: put together for the engine, which runs them in this process."""

from __future__ import annotations

import contextlib
import importlib
import json
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gpuemu import _native
from gpuemu._arrays.numbers import seed_number, whole_number
from gpuemu._launches.watched_kernel import WatchedKernel
from gpuemu._runs.callable import Bridge
from gpuemu._runs.settings import listed_names
from gpuemu._runs.signature import accepted, function_name
from gpuemu.frameworks.base import BaseAdapter
from gpuemu.frameworks.current import current_adapter
from gpuemu.frameworks.registry import adapter as adapter_of

Progress = Callable[[int, int, int], None]

DISCIPLINES = ("aliasing", "output_overwritten")
"""Checks of memory that `allow=` can switch off."""


def random_seed() -> int:
    """Return a seed that nobody chose."""
    return random.SystemRandom().getrandbits(64)


def chosen_adapter(framework: str | BaseAdapter | None) -> BaseAdapter:
    """Return the adapter of a framework that is named, or is in use, or else that of NumPy."""
    if isinstance(framework, BaseAdapter):
        return framework
    if framework is not None:
        return adapter_of(framework)
    return current_adapter() or adapter_of("numpy")


@dataclass
class Plan:
    """How many cases, which, and for how long."""

    cases: int
    seed: int
    replayed: Sequence[int] = ()
    seconds: float | None = None
    fail_fast: bool = False
    repeats: int = 1000
    repeat_seconds: float = 0.5
    shard: tuple[int, int] | None = None
    """Only the cases of one part of so many, counted from 1; the report then has what joining it takes."""

    def to_json(self) -> str:
        """Return the plan as the engine reads it."""
        cases = whole_number(self.cases, "cases", 0 if self.replayed else 1)
        if self.seconds is not None and not 0 < float(self.seconds) < 1e9:
            raise ValueError(f"seconds is {self.seconds}; it must be above 0")
        return json.dumps(
            {
                "replayed": [str(seed_number(seed)) for seed in self.replayed],
                "base_seed": str(seed_number(self.seed)),
                "cases": cases,
                "shard": None if self.shard is None else {"index": self.shard[0], "count": self.shard[1]},
                "seconds": None if self.seconds is None else float(self.seconds),
                "fail_fast": bool(self.fail_fast),
                "repeats": whole_number(self.repeats, "repeats"),
                "repeat_seconds": self.repeat_seconds,
            }
        )


class OpRun:
    """One op and one callable."""

    def __init__(
        self,
        op: _native.ReadyOp,
        function: Callable[..., Any],
        adapter: BaseAdapter,
        out: bool | str | None = None,
        allow: Sequence[str] = (),
        name: str | None = None,
        dictionary: bool = False,
        launches: Any = None,
    ) -> None:
        """Put them together.

        `out` is the keyword that takes outputs; None looks for one called `out`. `launches` is what every
        call has to run.
        """
        if not callable(function):
            raise TypeError(f"the op under test is a {type(function).__name__}; give a function")
        for check in listed_names(allow, "allow"):
            if check not in DISCIPLINES:
                raise ValueError(f"allow has {check!r}; what can be allowed: {', '.join(DISCIPLINES)}")
        takes = json.dumps(accepted(function, adapter.shares_memory))
        keyword = _out_keyword(out, op.out_keyword(takes), adapter)
        self.adapter = adapter
        traits = {
            "name": name or f"callable {function_name(function)}",
            "layouts": adapter.sees_strides,
            "out": keyword,
            "inputs_watched": True,
            "refills": True,
            "dictionary": dictionary,
        }
        outputs = [tensor["name"] for tensor in json.loads(op.describe())["outputs"]]
        in_place = [name for name in outputs if name in op.inputs()]
        self.function = function
        self.kernel = None if launches is None else WatchedKernel(_kernel(launches))
        bridge = Bridge(
            function, adapter, keyword, allow, outputs=outputs, in_place=in_place, kernel=self.kernel
        )
        self.native = _native.OpRun(op, bridge, takes, json.dumps(traits))

    @contextlib.contextmanager
    def _session(self) -> Iterator[None]:
        """Let the function be called: the kernel that it launches is watched meanwhile."""
        if self.kernel is not None and not self.kernel.put_in_place(self.function):
            raise ValueError(
                f"launches is {self.kernel.original!r}, which no loaded module and not the function itself "
                "names: give the kernel as the function finds it, or leave launches out"
            )
        try:
            # Values that overflow are part of the trial: NumPy need not warn of each.
            with self.adapter.session(), np.errstate(all="ignore"):
                yield
        finally:
            if self.kernel is not None:
                self.kernel.take_away(self.function)

    def run(
        self,
        plan: Plan,
        sink: Callable[[list[str]], None] | None = None,
        progress: Progress | None = None,
    ) -> dict[str, Any]:
        """Run the cases; the report as JSON has it."""
        with self._session():
            report: dict[str, Any] = json.loads(self.native.run(plan.to_json(), sink, progress))
        return report

    def judge(self, seed: int) -> dict[str, Any]:
        """Judge the case of one seed."""
        with self._session():
            result: dict[str, Any] = json.loads(self.native.judge(seed))
        return result

    def minimise(self, seed: int, runs: int = 300, seconds: float = 5.0) -> dict[str, Any] | None:
        """Shrink the failing case of a seed; None where it does not fail by itself."""
        with self._session():
            found = self.native.minimise(seed, runs, seconds)
        return None if found is None else json.loads(found)


def _kernel(launches: Any) -> Any:
    """Return what every call has to run, which may be written as in `gpuemu.toml`, `pkg.mod:name`."""
    if isinstance(launches, str):
        module, _, name = launches.partition(":")
        if not name:
            raise ValueError(f"launches is {launches!r}; write it as 'pkg.mod:name', or give the kernel")
        launches = vars(importlib.import_module(module)).get(name)
    if not callable(launches) and not hasattr(launches, "__getitem__"):
        raise TypeError(f"launches is a {type(launches).__name__}; give a function or a kernel")
    return launches


def _out_keyword(out: bool | str | None, found: str | None, adapter: BaseAdapter) -> str | None:
    """Return the keyword that takes outputs: the one asked for, or the one found in the signature."""
    if isinstance(out, str):
        return out
    if out is False:
        return None
    if out and found is None and adapter.shares_memory:
        raise ValueError("out=True, but the function has no parameter called 'out'; give its name instead")
    return found
