"""What a caller says of the cases of an op: what they are drawn from, and how they are judged."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any

from gpuemu import _native
from gpuemu._arrays.dtypes import DTYPES, dtype_name
from gpuemu._arrays.numbers import json_value, whole_number
from gpuemu._cases.values import resolve
from gpuemu.precision import Precision, precision_json

if TYPE_CHECKING:
    from gpuemu.custom_op import CustomOp

Size = int | tuple[int, int] | Sequence[int]
Tolerance = float | tuple[float, float] | Mapping[str, Any]

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
            drawn["layouts"] = listed_names(self.layouts, "layouts")
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


def listed_names(names: Sequence[str], what: str) -> list[str]:
    """Return names that were given as a list; one text is refused."""
    return [str(name) for name in _listed(names, what)]


def _invariants(names: Sequence[str]) -> list[str]:
    for name in listed_names(names, "invariants"):
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
