"""One op, one callable, many cases: put together for the engine, which runs them in this process."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from gpuemu import _native
from gpuemu._callable import Bridge
from gpuemu._signature import accepted, function_name
from gpuemu.frameworks.base import BaseAdapter
from gpuemu.frameworks.current import current_adapter
from gpuemu.frameworks.registry import adapter as adapter_of
from gpuemu.precision import Precision, precision_json

Size = int | tuple[int, int] | Sequence[int]
Tolerance = float | tuple[float, float] | Mapping[str, Any]
Progress = Callable[[int, int, int], None]

DISCIPLINES = ("aliasing", "output_overwritten")
"""Checks of memory that `allow=` can switch off."""

_FLOATS = ("float8_e4m3fn", "float8_e5m2", "float16", "bfloat16", "float32", "float64")


@dataclass(frozen=True)
class Settings:
    """What cases are drawn from and how they are judged."""

    dtypes: Sequence[str] | None = None
    layouts: Sequence[str] | None = None
    values: str | None = None
    sizes: Mapping[str, Size] = field(default_factory=dict)
    min_shape: Sequence[int] = ()
    max_shape: Sequence[int] = ()
    budget: int | None = None
    parameters: Mapping[str, Any] = field(default_factory=dict)
    precision: Precision | Mapping[str, Any] | str | None = None
    tolerance: Tolerance | None = None
    invariants: Sequence[str] = ()

    def drawn(self) -> dict[str, Any]:
        """Return what cases are drawn from, as requests say it."""
        drawn: dict[str, Any] = {
            "min_shape": list(self.min_shape),
            "max_shape": list(self.max_shape),
        }
        if self.dtypes is not None:
            drawn["dtypes"] = _names(self.dtypes, "dtypes")
        if self.layouts is not None:
            drawn["layouts"] = _names(self.layouts, "layouts")
        if self.values is not None:
            drawn["values"] = self.values
        return drawn

    def options(self, project: Mapping[str, Any], replay: str | None) -> str:
        """Return the settings as the engine reads them."""
        options = {
            "project": project,
            "settings": self.drawn(),
            "precision": precision_json(self.precision),
            "tolerances": _tolerances(self.tolerance),
            "invariants": _names(self.invariants, "invariants"),
            "sizes": {name: _size(name, size) for name, size in self.sizes.items()},
            "budget": self.budget,
            "parameters": dict(self.parameters),
            "replay": replay,
        }
        return json.dumps(options)


def _names(names: Sequence[str], what: str) -> list[str]:
    if isinstance(names, str):
        raise TypeError(f"{what} is the text {names!r}; give a list, such as [{names!r}]")
    return [str(name) for name in names]


def _size(name: str, size: Size) -> Any:
    if isinstance(size, bool) or not isinstance(size, int | tuple | list):
        raise TypeError(
            f"the size of '{name}' is {size!r}; give a number, a (smallest, largest) pair or a list"
        )
    if isinstance(size, tuple):
        if len(size) != 2 or size[0] > size[1]:
            raise ValueError(f"the sizes of '{name}' are {size!r}; a pair is (smallest, largest)")
        return {"minimum": size[0], "maximum": size[1]}
    if isinstance(size, list) and not size:
        raise ValueError(f"the sizes of '{name}' are an empty list")
    return size


def _tolerances(tolerance: Tolerance | None) -> dict[str, Any]:
    if tolerance is None:
        return {}
    if isinstance(tolerance, Mapping) and not {"atol", "rtol"} & set(tolerance):
        return {dtype: _pair(pair) for dtype, pair in tolerance.items()}
    return dict.fromkeys(_FLOATS, _pair(tolerance))


def _pair(tolerance: Any) -> dict[str, float]:
    if isinstance(tolerance, Mapping):
        return {"atol": float(tolerance.get("atol", 0.0)), "rtol": float(tolerance.get("rtol", 0.0))}
    if isinstance(tolerance, tuple | list):
        if len(tolerance) != 2:
            raise ValueError(f"a tolerance is {tolerance!r}; give (atol, rtol)")
        return {"atol": float(tolerance[0]), "rtol": float(tolerance[1])}
    return {"atol": float(tolerance), "rtol": float(tolerance)}


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

    def to_json(self) -> str:
        """Return the plan as the engine reads it."""
        if self.cases < 0 or (self.cases == 0 and not self.replayed):
            raise ValueError(f"cases is {self.cases}: no case would be run")
        if self.seconds is not None and not 0 < self.seconds < 1e9:
            raise ValueError(f"seconds is {self.seconds}; it must be above 0")
        return json.dumps(
            {
                "replayed": [str(seed) for seed in self.replayed],
                "base_seed": str(self.seed),
                "cases": self.cases,
                "seconds": self.seconds,
                "fail_fast": self.fail_fast,
                "repeats": self.repeats,
                "repeat_seconds": self.repeat_seconds,
            }
        )


class Campaign:
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
    ) -> None:
        """Put them together. `out` is the keyword that takes outputs; None looks for one called `out`."""
        if not callable(function):
            raise TypeError(f"the op under test is a {type(function).__name__}; give a function")
        for check in _names(allow, "allow"):
            if check not in DISCIPLINES:
                raise ValueError(f"allow has {check!r}; what can be allowed: {', '.join(DISCIPLINES)}")
        takes = accepted(function)
        keyword = _out_keyword(out, takes, adapter)
        if keyword is not None:
            # gpuemu's own argument, which no case has.
            takes["required"] = [known for known in takes["required"] if known != keyword]
        self.adapter = adapter
        traits = {
            "name": name or f"callable {function_name(function)}",
            "layouts": adapter.sees_strides,
            "writes_into_buffers": keyword is not None,
            "inputs_watched": True,
            "refills": True,
            "dictionary": dictionary,
        }
        bridge = Bridge(function, adapter, keyword, allow)
        self.native = _native.Campaign(op, bridge, json.dumps(takes), json.dumps(traits))

    def run(
        self,
        plan: Plan,
        sink: Callable[[list[str]], None] | None = None,
        progress: Progress | None = None,
    ) -> dict[str, Any]:
        """Run the cases; the report as JSON has it."""
        # Values that overflow are part of the trial: NumPy need not warn of each.
        with self.adapter.session(), np.errstate(all="ignore"):
            report: dict[str, Any] = json.loads(self.native.run(plan.to_json(), sink, progress))
        return report

    def judge(self, seed: int) -> dict[str, Any]:
        """Judge the case of one seed."""
        with self.adapter.session(), np.errstate(all="ignore"):
            result: dict[str, Any] = json.loads(self.native.judge(seed))
        return result

    def minimise(self, seed: int, runs: int = 300, seconds: float = 5.0) -> dict[str, Any] | None:
        """Shrink the failing case of a seed; None where it does not fail by itself."""
        with self.adapter.session(), np.errstate(all="ignore"):
            found = self.native.minimise(seed, runs, seconds)
        return None if found is None else json.loads(found)


def _out_keyword(out: bool | str | None, takes: Mapping[str, Any], adapter: BaseAdapter) -> str | None:
    if isinstance(out, str):
        return out
    if out is False or not adapter.shares_memory:
        return None
    if "out" in takes["names"]:
        return "out"
    if out:
        raise ValueError("out=True, but the function has no parameter called 'out'; give its name instead")
    return None
