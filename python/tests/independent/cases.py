"""Generated cases with what the engine's reference expects, compared with another implementation."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
Reals = npt.NDArray[np.float64]

UNIT = 2.0**-53
"""Unit roundoff of float64."""

SINGLE = 2.0**-24
"""Unit roundoff of float32, in which the engine's bounds are."""


class Expected(NamedTuple):
    """What the engine expects of one output."""

    values: Reals
    delta: Reals
    excused: npt.NDArray[np.bool_]


class Case(NamedTuple):
    """One generated case: inputs in float64 (whole numbers in int64, flags in bool)."""

    seed: str
    dtype: str
    strategy: str
    sizes: dict[str, int]
    parameters: dict[str, Any]
    inputs: dict[str, Array]
    expected: dict[str, Expected]

    def input(self, name: str) -> Array:
        """Return an input that the op always has."""
        return self.inputs[name]


Reference = Callable[[Case], dict[str, Any]]
"""From a case to its outputs by name: arrays, or tensors of a framework."""


def generated(op: str, count: int, seed: int = 1) -> Iterator[Case]:
    """Yield cases of an op from the engine's example program."""
    program = os.environ.get("GPUEMU_REFERENCE_CASES")
    if not program or not Path(program).exists():
        message = "GPUEMU_REFERENCE_CASES must name the example `reference_cases` of gpuemu-engine, built"
        raise FileNotFoundError(message)
    with subprocess.Popen([program, op, str(count), str(seed)], stdout=subprocess.PIPE) as process:
        if process.stdout is None:
            raise RuntimeError(program)
        for line in process.stdout:
            header = json.loads(line)
            numbers = np.frombuffer(process.stdout.read(8 * header["numbers"]), dtype="<f8")
            yield _case(header, numbers)
    if process.returncode != 0:
        raise RuntimeError(f"{program} {op} {count} {seed} ended with {process.returncode}")


def _case(header: dict[str, Any], numbers: Reals) -> Case:
    place = 0

    def take(shape: list[int]) -> Reals:
        nonlocal place
        count = int(np.prod(shape, dtype=np.int64))
        place += count
        return numbers[place - count : place].reshape(shape).copy()

    inputs: dict[str, Array] = {}
    for spec in header["inputs"]:
        values = take(spec["shape"])
        if spec["dtype"] == "bool":
            # Of a tensor without dims, a comparison makes a scalar.
            inputs[spec["name"]] = np.asarray(values != 0)
        else:
            whole = "int" in spec["dtype"]
            inputs[spec["name"]] = values.astype(np.int64) if whole else values
    expected = {
        spec["name"]: Expected(take(spec["shape"]), take(spec["shape"]), take(spec["shape"]) != 0)
        for spec in header["outputs"]
    }
    return Case(
        header["seed"],
        header["dtype"],
        header["strategy"],
        header["sizes"],
        header["parameters"],
        inputs,
        expected,
    )


class Agreement(NamedTuple):
    """How far two implementations are apart at most."""

    compared: int
    excused: int
    share: float
    """Of what float64 may lose in either, by the engine's own condition."""
    problem: str | None


def agreement(case: Case, outputs: dict[str, Any]) -> Agreement:
    """Compare an independent implementation with the engine's reference.

    What the conditions say float32 may lose, float64 loses 2**-29 of: that, for both sides and with a margin
    of four, and eight ulp are allowed.
    """
    compared, excused, share = 0, 0, 0.0
    for name, expected in case.expected.items():
        values = np.asarray(outputs[name], dtype=np.float64)
        if values.shape != expected.values.shape:
            return Agreement(
                compared, excused, share, f"{name} has shape {values.shape}, not {expected.values.shape}"
            )
        judged = ~expected.excused
        compared += int(judged.sum())
        excused += int(expected.excused.sum())
        with np.errstate(invalid="ignore", over="ignore"):
            allowed = 8 * UNIT * np.abs(expected.values) + 4 * (UNIT / SINGLE) * expected.delta + 1e-300
            distance = np.abs(values - expected.values)
            same = (values == expected.values) | (np.isnan(values) & np.isnan(expected.values))
            wrong = judged & ~same & ~(distance <= allowed)
            inexact = judged & ~same & np.isfinite(distance)
        if inexact.any():
            share = max(share, float(np.max(distance[inexact] / allowed[inexact])))
        if wrong.any():
            index = tuple(int(place) for place in np.argwhere(wrong)[0])
            problem = f"{name}{list(index)}: engine {expected.values[index]!r}, independent {values[index]!r}"
            return Agreement(compared, excused, share, f"{problem}, allowed {allowed[index]!r}")
    return Agreement(compared, excused, share, None)
