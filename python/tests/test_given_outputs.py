"""Functions that are given memory for outputs get the same verdicts by `gpuemu test` and `gpuemu.check`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from parity_doors import said_by_all

import gpuemu

pytest_plugins = ["daemon_fixtures"]

Array = npt.NDArray[Any]

FUNCTIONS = """
import numpy as np


def kernel(out, x):
    np.maximum(x, 0, out=out)


def fills(input, out):
    np.maximum(input, 0, out=out)


def returns(x, *, out=None):
    return np.maximum(x, 0, out=out)


def elsewhere(input, out):
    return np.maximum(input, 0)


def tail(input, out):
    whole = out.size - out.size % 4
    out.reshape(-1)[:whole] = np.maximum(input, 0).reshape(-1)[:whole]


def past(input, out):
    np.maximum(input, 0, out=out)
    if out.size:
        np.lib.stride_tricks.as_strided(out.reshape(-1), (out.size + 1,))[-1] = 1


def spoils(input, out):
    np.maximum(input, 0, out=out)
    input[...] = 0


def as_list(input, out):
    np.maximum(input, 0, out=out)
    return [out]


def launched(input, out):
    kernel(out, input)


def skips(input, out):
    np.maximum(input, 0, out=out)


def keywords(input, **rest):
    return np.maximum(input, 0, **rest)


def raises(input, out):
    raise ValueError("no")
"""
FOUND = {
    "fills": set(),
    "returns": set(),
    "elsewhere": {"runner"},
    "tail": {"not_written"},
    "past": {"out_of_bounds"},
    "spoils": {"input_modified"},
    "as_list": {"runner"},
    "launched": set(),
    "skips": {"not_launched"},
    "keywords": set(),
    "raises": {"runner"},
}
LAUNCHES = {name: "given_outputs:kernel" for name in ("launched", "skips")}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Return a project with all functions as its ops."""
    (tmp_path / "given_outputs.py").write_text(FUNCTIONS, encoding="utf-8")
    lines = ["[project]", 'name = "given"', 'framework = "numpy"']
    for name in FOUND:
        lines += ["", "[[ops]]", f'name = "{name}"', 'op = "relu"', f'module = "given_outputs:{name}"']
        lines += [f'launches = "{LAUNCHES[name]}"'] if name in LAUNCHES else []
        lines += ['values = "regular"', 'dtypes = ["float32"]']
    (tmp_path / "gpuemu.toml").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return tmp_path


def test_every_door_says_the_same(project: Path, daemon_home: Path) -> None:
    doors = said_by_all(project, daemon_home)
    for name, checks in FOUND.items():
        said = [json.dumps(door[name]) for door in doors.values()]
        assert len(set(said)) == 1, f"{name}:\n" + "\n".join(said)
        found = doors["gpuemu.check"][name]
        assert checks <= {check for check, _ in found["findings"]}, said[0]
        assert found["status"] == ("failed" if checks else "passed"), said[0]
        missing = ["stores out of bounds", "unwritten outputs"] if name == "keywords" else []
        assert found["not_checked"] == missing, said[0]


def test_an_argument_of_the_op_that_is_called_out_is_passed_as_it_is() -> None:
    def add(x: Array, out: Array) -> None:
        out += x

    op = gpuemu.op("add_to", "x[N] out[N] -> out[N]", lambda x, out: x + out)
    assert gpuemu.check(op, add, cases=20, values="regular", store=False)

    op = gpuemu.op("times", "x[N] out:int=3 -> y[N]", lambda x, out: x * out)
    assert gpuemu.check(op, lambda x, out: x * x.dtype.type(out), cases=20, values="regular", store=False)


def test_optional_inputs_that_are_given_by_place_leave_the_output_alone() -> None:
    def layer_norm(x: Array, out: Array) -> None:
        wide = x.astype(np.float64)
        centred = wide - wide.mean(-1, keepdims=True)
        out[...] = centred / np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-5)

    options: dict[str, Any] = {"sizes": {"H": (1, 80)}, "values": "regular", "seed": 3, "store": False}
    report = gpuemu.check("layernorm", layer_norm, cases=20, **options)
    assert report.report.not_checked == []
    assert "'weight' is not exercised: the function does not take it" in report.warnings
