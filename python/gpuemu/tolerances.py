"""Tolerances for those who need a pair of numbers in place of a bound."""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from gpuemu import _native
from gpuemu._arrays.dtypes import FLOAT_FORMATS, dtype_name
from gpuemu._arrays.numbers import seed_number, whole_number
from gpuemu._client.project import project_reference
from gpuemu._client.record import Record
from gpuemu._runs.op_run import OpRun, chosen_adapter, random_seed
from gpuemu._runs.settings import Settings, check_op, opened
from gpuemu.custom_op import CustomOp
from gpuemu.errors import ClientError
from gpuemu.frameworks.base import BaseAdapter
from gpuemu.rng import case_seed

if TYPE_CHECKING:
    from gpuemu.client import Client

DEFAULT_TOLERANCES = {
    "float64": 1e-10,
    "float32": 1e-5,
    "float16": 1e-2,
    "bfloat16": 1e-2,
    "float8_e4m3fn": 1e-1,
    "float8_e5m2": 1e-1,
}
"""atol and rtol of each dtype for ops that gpuemu knows nothing about."""

_BOUND_FACTOR = 1.25
_CASES = 64


@dataclass(frozen=True)
class Tolerance(Record):
    """An absolute and a relative tolerance: |out − y| ≤ atol + rtol·|y|."""

    atol: float
    rtol: float


@dataclass(frozen=True)
class Calibration(Record):
    """A tolerance that was measured on a trusted control."""

    atol: float
    """1.5 times the 95th percentile of the control's errors."""
    rtol: float
    tightest: Tolerance
    """The tightest pair with which every case of the control passes."""
    cases: int
    seed: int
    errors: list[float] = field(repr=False, default_factory=list)
    """The largest |out − y| / (1 + |y|) of each case, in ascending order."""


def get_recommended_tolerance(
    op: str, dtype: Any = "float32", cases: int = _CASES, seed: int = 0
) -> Tolerance:
    """Return a tolerance that no correct kernel of a built-in op exceeds on ordinary values.

    It is taken from the rigorous bound of generated cases, rounding of the result included; the bound itself,
    which `gpuemu.check` uses, is tighter almost everywhere. An op that is not built in has the default of its
    dtype.
    """
    name = dtype_name(dtype)
    if name not in FLOAT_FORMATS:
        return Tolerance(0.0, 0.0)
    default = Tolerance(DEFAULT_TOLERANCES[name], DEFAULT_TOLERANCES[name])
    options = Settings(dtypes=[name], values="regular").options({"root": "."}, None)
    try:
        ready = _native.ReadyOp.open(op, options)
    except ClientError as error:
        if error.code == "OpNotFound":
            return default
        raise
    layout = FLOAT_FORMATS[name]
    largest = 0.0
    for index in range(cases):
        _, inputs, kwargs = ready.case(case_seed(seed, index))
        if any(0 in shape for _, (_, _, shape, _, _) in inputs):
            # Nothing is computed from nothing, and some sizes cannot be told from empty inputs.
            continue
        for _, _, values, delta in ready.expected(inputs, kwargs):
            known = np.isfinite(values) & np.isfinite(delta)
            magnitudes = np.abs(values[known])
            rounding = layout.unit_roundoff * np.maximum(magnitudes, layout.min_normal)
            allowed = _BOUND_FACTOR * delta[known] + rounding
            largest = max(largest, float(np.max(allowed / (1.0 + magnitudes), initial=0.0)))
    return Tolerance(largest, largest) if largest > 0.0 else default


def calibrate_tolerance(
    client: Client | None,
    op: str | CustomOp,
    dtype: Any = "float32",
    iterations: int = 100,
    *,
    control: Callable[..., Any] | None = None,
    itself: bool = False,
    seed: int | None = None,
    framework: str | BaseAdapter | None = None,
) -> Calibration:
    """Measure a trusted control: a framework's op, or a second implementation.

    The errors of an op are no measure of what it may do wrong: a control that is the op under test would
    bless its bug. That is refused unless `itself=True` asks for it by name, which runs the module that the
    project names.
    """
    check_op(op)
    name = dtype_name(dtype)
    op_name = op if isinstance(op, str) else op.name
    project = project_reference() if client is None else client.project
    configured = _configured_function(client, op_name, project, imported=itself and control is None)
    if control is None:
        if not itself or configured is None:
            raise ValueError(
                f"calibrating '{op_name}' on itself would bless its bugs; give control=…, a trusted "
                "implementation of the same op, or itself=True if the project has a module for it and you "
                "mean it"
            )
        control = configured[1]
    elif configured is not None and not itself and _same(control, configured[0]):
        raise ValueError(
            f"the control is the op '{op_name}' itself ({configured[0]}), which would bless its bugs; give a "
            "trusted implementation, or itself=True if you mean it"
        )
    assert control is not None
    ready = opened(op, Settings(dtypes=[name]).options(project, None))
    op_run = OpRun(ready, control, chosen_adapter(framework))
    base = random_seed() if seed is None else seed_number(seed)
    cases = whole_number(iterations, "iterations", 1)
    with op_run.adapter.session(), np.errstate(all="ignore"):
        measured = json.loads(op_run.native.calibrate(name, base, cases))
    atol, rtol = measured["envelope"]
    return Calibration(
        atol, rtol, Tolerance(*measured["tightest"]), len(measured["errors"]), base, measured["errors"]
    )


def _configured_function(
    client: Client | None, op: str, project: dict[str, Any], imported: bool
) -> tuple[str, Callable[..., Any] | None] | None:
    """Return the function that a project names for an op: `module:name`, and the function if it is wanted."""
    if project.get("config") is None:
        return None
    if client is None:
        from gpuemu.client import Client

        with Client(project=project["root"]) as own:
            ops = own.list_ops()
    else:
        ops = client.list_ops()
    source = next((known.source for known in ops if known.name == op), "")
    if not source.startswith("module "):
        return None
    module, _, name = source.removeprefix("module ").partition(":")
    if not imported:
        return f"{module}:{name or op}", None
    sys.path.insert(0, str(project["root"]))
    try:
        found = importlib.import_module(module)
    finally:
        sys.path.remove(str(project["root"]))
    function = getattr(found, name or op, None) or getattr(found, "run", None)
    return f"{module}:{name or op}", function


def _same(control: Callable[..., Any], configured: str) -> bool:
    module, _, name = configured.partition(":")
    names = (name, "run")
    return getattr(control, "__module__", None) == module and getattr(control, "__qualname__", None) in names
