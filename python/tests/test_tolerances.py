"""Tolerances: recommended, and measured on a trusted control."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy_kernels import Array, relu, softmax

import gpuemu
from gpuemu import _native, iterators, tolerances
from gpuemu.client import Client
from gpuemu.errors import ClientError

pytest_plugins = ["daemon_fixtures"]


def rmsnorm(input: Array, weight: Array | None = None, eps: float = 1e-6, unit_offset: bool = False) -> Array:
    scale = 1 / np.sqrt(
        np.mean(input * input, axis=-1, keepdims=True, dtype=input.dtype) + input.dtype.type(eps)
    )
    if weight is None:
        return input * scale
    return input * scale * (weight + input.dtype.type(unit_offset))


def in_float32(input: Array) -> Array:
    powers = np.exp(input - input.max(axis=-1, keepdims=True, initial=-np.inf))
    return powers / powers.sum(axis=-1, keepdims=True)


FLOAT32: dict[str, Any] = {
    "softmax": in_float32,
    "relu": relu,
    "matmul": lambda a, b: a @ b,
    "sum": lambda input: np.asarray(input.sum(axis=-1, dtype=input.dtype)),
    "rmsnorm": rmsnorm,
    "silu": lambda input: input / (1 + np.exp(-input)),
    "sigmoid": lambda input: 1 / (1 + np.exp(-input)),
    "tanh": np.tanh,
}


@pytest.mark.parametrize("op", FLOAT32)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_recommended_tolerance_covers_numpys_own_arithmetic(op: str, dtype: str) -> None:
    recommended = tolerances.get_recommended_tolerance(op, dtype)
    assert recommended.atol > 0 and recommended.rtol > 0 and recommended["atol"] == recommended.atol
    options: dict[str, Any] = {"tolerance": (recommended.atol, recommended.rtol), "values": "regular"}
    with np.errstate(all="ignore"):
        report = gpuemu.check(
            op,
            FLOAT32[op],
            dtypes=[dtype],
            cases=60,
            seed=99,
            store=False,
            out=False,
            raises=False,
            **options,
        )
    assert report.passed, str(report)


def test_every_op_has_a_recommended_tolerance_in_every_float_dtype() -> None:
    for op in _native.builtin_ops():
        found = []
        for dtype in ("float64", "float32"):
            try:
                found.append(tolerances.get_recommended_tolerance(op, dtype, cases=12).atol)
            except ClientError as error:
                # Ops with scales in float32 or whole numbers have no float64.
                assert (dtype, str(error)) == ("float64", f"op '{op}' cannot be judged in float64")
        assert all(atol > 0 for atol in found) and found == sorted(found), (op, found)
    dtypes = ("float64", "float32", "float16", "bfloat16")
    narrow = [tolerances.get_recommended_tolerance("softmax", dtype).atol for dtype in dtypes]
    assert narrow == sorted(narrow)
    with pytest.raises(ClientError, match="op 'softmax' cannot be judged in float8_e5m2"):
        tolerances.get_recommended_tolerance("softmax", "float8_e5m2")
    assert tolerances.get_recommended_tolerance("softmax", np.float32) == tolerances.Tolerance(
        *[tolerances.get_recommended_tolerance("softmax").atol] * 2
    )


def test_what_gpuemu_knows_nothing_about_has_the_default_of_its_dtype() -> None:
    for dtype, default in tolerances.DEFAULT_TOLERANCES.items():
        found = tolerances.get_recommended_tolerance("an_op_of_mine", dtype)
        assert (found.atol, found.rtol) == (default, default)
    whole = tolerances.get_recommended_tolerance("softmax", "int32")
    assert (whole.atol, whole.rtol) == (0, 0)
    with pytest.raises(ValueError, match="unknown dtype 'float99'"):
        tolerances.get_recommended_tolerance("softmax", "float99")


# Measured.


def test_a_control_is_measured() -> None:
    measured = tolerances.calibrate_tolerance(None, "softmax", control=in_float32, iterations=60, seed=1)
    assert 0 < measured.atol < 1e-5 and measured.atol == measured.rtol and measured.seed == 1
    assert 0 < measured.cases == len(measured.errors) <= 60 and measured.errors == sorted(measured.errors)
    high = measured.errors[int(0.95 * (len(measured.errors) - 1))]
    assert measured.atol == pytest.approx(1.5 * high, rel=0.3)
    again = tolerances.calibrate_tolerance(None, "softmax", control=in_float32, iterations=60, seed=1)
    assert again == measured

    def passing(factor: float) -> int:
        pair = (measured.tightest.atol * factor, measured.tightest.rtol * factor)
        with np.errstate(all="ignore"):
            verdicts = [
                gpuemu.validate("softmax", case.inputs, in_float32(case.inputs["input"]), tolerance=pair)
                for case in iterators.cases("softmax", 60, seed=1)
            ]
        return sum(verdict.outcome != "failed" for verdict in verdicts)

    assert passing(1.0001) == 60 and passing(0.9) < 60
    exact = tolerances.calibrate_tolerance(None, "relu", "bfloat16", control=relu, iterations=20)
    assert (exact.atol, exact.tightest.atol) == (0, 0)
    better = tolerances.calibrate_tolerance(None, "softmax", control=softmax, iterations=60, seed=1)
    assert better.atol < measured.atol


def test_a_control_that_fails_is_named_with_the_case() -> None:
    def broken(input: Array) -> Array:
        raise RuntimeError("no control")

    with pytest.raises(
        ClientError, match=r"the control failed on the case with seed \d+: .*RuntimeError: no"
    ):
        tolerances.calibrate_tolerance(None, "softmax", control=broken)
    with pytest.raises(ClientError, match=r"the control failed on .* is of type list, not a result"):
        tolerances.calibrate_tolerance(None, "softmax", control=lambda input: [1.0])
    with pytest.raises(ValueError, match="iterations is 0; it must be 1 or more"):
        tolerances.calibrate_tolerance(None, "softmax", control=softmax, iterations=0)
    with pytest.raises(ValueError, match="the seed -1 is not"):
        tolerances.calibrate_tolerance(None, "softmax", control=softmax, seed=-1)


MODULE = "kernels_of_a_calibration"
REFUSED = (
    "calibrating 'relu' on itself would bless its bugs; give control=…, a trusted implementation of the "
    "same op, or itself=True if the project has a module for it and you mean it"
)


@pytest.fixture
def configured(daemon_home: Path, project: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Client]:
    """Return a client of a project whose op `relu` is a function of a module."""
    (project / "gpuemu.toml").write_text(
        f'[project]\nname = "p"\nframework = "numpy"\n\n[[ops]]\nname = "relu"\nmodule = "{MODULE}"\n'
    )
    (project / f"{MODULE}.py").write_text(
        "import numpy as np\n\n\ndef relu(input):\n    return np.maximum(input, 0) + input.dtype.type(0.5)\n"
    )
    with Client(project=project) as client:
        yield client
    sys.modules.pop(MODULE, None)


def test_an_op_is_not_calibrated_on_itself(
    configured: Client, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for client in (configured, None):
        with pytest.raises(ValueError) as caught:
            tolerances.calibrate_tolerance(client, "relu")
        assert str(caught.value) == REFUSED
    monkeypatch.syspath_prepend(str(project))
    monkeypatch.chdir(project)
    module = __import__(MODULE)
    for client in (configured, None):
        with pytest.raises(ValueError) as caught:
            tolerances.calibrate_tolerance(client, "relu", control=module.relu)
        assert str(caught.value) == (
            f"the control is the op 'relu' itself ({MODULE}:relu), which would bless its bugs; give a "
            "trusted implementation, or itself=True if you mean it"
        )
    right = tolerances.calibrate_tolerance(configured, "relu", control=relu, iterations=20)
    assert right.atol == 0


def test_an_op_is_calibrated_on_itself_where_that_is_asked_for_by_name(configured: Client) -> None:
    measured = tolerances.calibrate_tolerance(configured, "relu", itself=True, iterations=40, seed=1)
    # Its bug is blessed: that is why it has to be asked for.
    assert measured.tightest.atol > 0.2
    for client, op in ((None, "relu"), (configured, "softmax")):
        with pytest.raises(ValueError, match=f"calibrating '{op}' on itself would bless its bugs"):
            tolerances.calibrate_tolerance(client, op, itself=True)


def test_an_op_of_a_program_has_a_control_too() -> None:
    double = gpuemu.op("double", "x[N] -> out[N]", lambda x: 2 * x)
    measured = tolerances.calibrate_tolerance(
        None, double, "float16", control=lambda x: x + x, iterations=20, seed=1
    )
    assert measured.atol < 1e-3
    with pytest.raises(ValueError, match="calibrating 'double' on itself"):
        tolerances.calibrate_tolerance(None, double)
    with pytest.raises(TypeError, match="the op is a function"):
        tolerances.calibrate_tolerance(None, relu, control=relu)  # type: ignore[arg-type]
