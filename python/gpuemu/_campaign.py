"""One op, one callable, many cases: put together for the engine, which runs them in this process."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any

import numpy as np

from gpuemu import _native
from gpuemu._callable import Bridge
from gpuemu._dtypes import DTYPES, dtype_name
from gpuemu._numbers import json_value, seed_number, whole_number
from gpuemu._signature import accepted, function_name
from gpuemu._values import resolve
from gpuemu.frameworks.base import BaseAdapter
from gpuemu.frameworks.current import current_adapter
from gpuemu.frameworks.registry import adapter as adapter_of
from gpuemu.precision import Precision, precision_json

if TYPE_CHECKING:
    from gpuemu.custom_op import CustomOp

Size = int | tuple[int, int] | Sequence[int]
Tolerance = float | tuple[float, float] | Mapping[str, Any]
Progress = Callable[[int, int, int], None]

DISCIPLINES = ("aliasing", "output_overwritten")
"""Checks of memory that `allow=` can switch off."""

INVARIANTS = ("shape_preserved", "non_negative", "finite", "symmetric", "normalized")
"""What can be asked of every output, beside being right."""


@dataclass(frozen=True)
class Settings:
    """What cases are drawn from and how they are judged."""

    dtypes: Sequence[Any] | None = None
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
            "min_shape": [whole_number(size, "a size of min_shape") for size in self.min_shape],
            "max_shape": [whole_number(size, "a size of max_shape") for size in self.max_shape],
        }
        if self.dtypes is not None:
            drawn["dtypes"] = [dtype_name(dtype) for dtype in _listed(self.dtypes, "dtypes")]
        if self.layouts is not None:
            drawn["layouts"] = _names(self.layouts, "layouts")
        if self.values is not None:
            # An unknown name is refused here, with those that are known.
            resolve(self.values, 0)
            drawn["values"] = self.values
        return drawn

    def options(self, project: Mapping[str, Any], replay: str | None) -> str:
        """Return the settings as the engine reads them."""
        options = {
            "project": project,
            "settings": self.drawn(),
            "precision": precision_json(self.precision),
            "tolerances": _tolerances(self.tolerance),
            "invariants": _invariants(self.invariants),
            "sizes": {name: _size(name, size) for name, size in self.sizes.items()},
            "budget": None if self.budget is None else whole_number(self.budget, "budget", 1),
            "parameters": dict(self.parameters),
            "replay": replay,
        }
        return json.dumps(options, default=json_value)

    def written(self) -> list[str]:
        """Return what was chosen, as keyword arguments of `gpuemu.check` are written."""
        drawn = {name: value for name, value in self.drawn().items() if value}
        given = {
            **drawn,
            "sizes": dict(self.sizes),
            "budget": self.budget,
            "kwargs": dict(self.parameters),
            "precision": self.precision,
            "tolerance": self.tolerance,
            "invariants": self.invariants,
        }
        return [
            f"{name}={value!r}"
            for name, value in given.items()
            if value is not None and value not in ({}, (), [])
        ]


def settings_of(caller: str, options: Mapping[str, Any]) -> Settings:
    """Return settings from keyword arguments; `kwargs` is the name that `gpuemu.check` has for parameters."""
    known = [item.name for item in fields(Settings)]
    given = dict(options)
    if "kwargs" in given:
        given["parameters"] = given.pop("kwargs")
    for name in given:
        if name not in known:
            names = ", ".join("kwargs" if item == "parameters" else item for item in known)
            raise TypeError(f"{caller} has no {name!r}; what cases are drawn from: {names}")
    return Settings(**given)


def opened(op: str | CustomOp, options: str) -> _native.ReadyOp:
    """Return an op, ready to be judged."""
    check_op(op)
    return _native.ReadyOp.open(op, options) if isinstance(op, str) else op.open(options)


def check_op(op: Any) -> None:
    """Refuse what is neither the name of an op nor an op."""
    from gpuemu.custom_op import CustomOp

    if not isinstance(op, str | CustomOp):
        raise TypeError(f"the op is a {type(op).__name__}; give the name of an op, or what gpuemu.op returns")


def _listed(values: Sequence[Any], what: str) -> Sequence[Any]:
    if isinstance(values, str):
        raise TypeError(f"{what} is the text {values!r}; give a list, such as [{values!r}]")
    return values


def _names(names: Sequence[str], what: str) -> list[str]:
    return [str(name) for name in _listed(names, what)]


def _invariants(names: Sequence[str]) -> list[str]:
    for name in _names(names, "invariants"):
        if name not in INVARIANTS:
            raise ValueError(f"unknown invariant '{name}'; known: {', '.join(INVARIANTS)}")
    return list(names)


def _size(name: str, size: Any) -> Any:
    if isinstance(size, tuple):
        if len(size) != 2 or size[0] > size[1]:
            raise ValueError(f"the sizes of '{name}' are {size!r}; a pair is (smallest, largest)")
        smallest, largest = (whole_number(one, f"a size of '{name}'") for one in size)
        return {"minimum": smallest, "maximum": largest}
    if isinstance(size, list):
        if not size:
            raise ValueError(f"the sizes of '{name}' are an empty list")
        return [whole_number(one, f"a size of '{name}'") for one in size]
    if isinstance(size, str | bool) or not hasattr(size, "__index__"):
        raise TypeError(
            f"the size of '{name}' is {size!r}; give a number, a (smallest, largest) pair or a list"
        )
    return whole_number(size, f"the size of '{name}'")


def _tolerances(tolerance: Tolerance | None) -> dict[str, Any]:
    if tolerance is None:
        return {}
    if isinstance(tolerance, Mapping) and not {"atol", "rtol"} & set(tolerance):
        return {dtype_name(dtype): _pair(pair) for dtype, pair in tolerance.items()}
    return dict.fromkeys(DTYPES, _pair(tolerance))


def _pair(tolerance: Any) -> dict[str, float]:
    if isinstance(tolerance, Mapping):
        if unknown := [name for name in tolerance if name not in ("atol", "rtol")]:
            raise ValueError(f"a tolerance has atol and rtol, no {unknown[0]!r}")
        pair = (tolerance.get("atol", 0.0), tolerance.get("rtol", 0.0))
    elif isinstance(tolerance, tuple | list):
        if len(tolerance) != 2:
            raise ValueError(f"a tolerance is {tolerance!r}; give (atol, rtol)")
        pair = (tolerance[0], tolerance[1])
    else:
        pair = (tolerance, tolerance)
    for part in pair:
        if isinstance(part, str | bool) or not hasattr(part, "__float__"):
            raise TypeError(f"a tolerance is {tolerance!r}; give a number, (atol, rtol), or a dict by dtype")
        if not 0.0 <= float(part) < float("inf"):
            raise ValueError(f"a tolerance is {tolerance!r}; atol and rtol must be numbers of 0 or more")
    return {"atol": float(pair[0]), "rtol": float(pair[1])}


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
        outputs = [tensor["name"] for tensor in json.loads(op.describe())["outputs"]]
        in_place = [name for name in outputs if name in op.inputs()]
        bridge = Bridge(function, adapter, keyword, allow, outputs=outputs, in_place=in_place)
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
