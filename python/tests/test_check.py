"""`gpuemu.check` on kernels in NumPy."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from numpy_kernels import Array, matmul, padded_softmax, relu, softmax

import gpuemu
from gpuemu.client import Client
from gpuemu.errors import ClientError
from gpuemu.rng import case_seed

pytest_plugins = ["daemon_fixtures"]

FLOATS = ["float16", "bfloat16", "float32", "float64"]


def try_it(op: Any, function: Any, **options: Any) -> gpuemu.CheckReport:
    """Run a check that stores nothing and raises nothing."""
    return gpuemu.check(op, function, **{"store": False, "raises": False, "seed": 1, **options})


def off_by_one(input: Array) -> Array:
    return relu(input) + input.dtype.type(1)


def in_words(report: gpuemu.CheckReport) -> dict[str, Any]:
    """Return a report without what differs from run to run: times."""
    written = report.to_json()
    written["report"].pop("seconds")
    for result in [
        *written["report"]["failures"],
        *([] if report.smallest is None else [written["smallest"]["result"]]),
    ]:
        result.pop("time")
    return written


# Verdicts.


def test_right_kernels_pass_in_every_float_dtype() -> None:
    for op, function in (("softmax", softmax), ("matmul", matmul), ("relu", relu)):
        report = gpuemu.check(op, function, dtypes=FLOATS, cases=60, seed=3, store=False)
        assert report and report.passed and report.status == "passed" and report.cases == 60
        assert {counts.dtype for counts in report.report.dtypes} == set(FLOATS)
        assert report.failures == [] and report.smallest is None
        lines = str(report).splitlines()
        assert lines[0].startswith(f"{op}: ")
        assert lines[0].endswith(" of 60 cases passed (float16, bfloat16, float32, float64)")
        assert lines[-1] == "  not checked: unwritten outputs, stores out of bounds"
        assert lines[1:-1] == [f"  warning: {warning}" for warning in report.warnings]


def test_a_wrong_kernel_raises_an_assertion_that_says_all() -> None:
    with pytest.raises(AssertionError) as caught:
        gpuemu.check("softmax", padded_softmax, seed=1, store=False)
    lines = str(caught.value).splitlines()
    assert lines[0] == "softmax: 61 of 100 cases failed (float32), callable numpy_kernels.padded_softmax"
    # The dtype, the shape, the layout, the kind of values and the seed.
    assert lines[1] == (
        "  float32, input[3, 13, 143], layout contiguous, regular values, seed 11967340547968660931"
    )
    # The check, what is wrong, and the class of the bug.
    assert lines[2].startswith("    value: 5577 of 5577 elements of 'out' differ; rows sum to 0.9")
    assert lines[2].endswith("[padding]")
    # The worst element.
    assert lines[3].startswith("    worst at [0, 12, 29]: 0.0361") and "expected 0.0363" in lines[3]
    assert "(error 0.00018" in lines[3] and "allowed 4" in lines[3]
    assert lines[4].startswith("  other failures: ")
    assert lines[5] == "  smallest failing case: float32, H=1"
    assert lines[6] == ('  reproduce: gpuemu.check("softmax", padded_softmax, replay=11967340547968660931)')
    assert len(lines) == 7


def test_the_smallest_case_has_a_passing_neighbour() -> None:
    def wrong_from_five(input: Array) -> Array:
        return softmax(input) if input.shape[-1] < 5 else softmax(input) * input.dtype.type(1.01)

    report = try_it("softmax", wrong_from_five)
    assert report.smallest is not None and report.smallest.neighbour is not None
    assert report.smallest.neighbour.to_json() == {"dimension": "H", "fails": 5, "passes": 4}
    assert "smallest failing case: float32, H=5 (fails at H=5, passes at H=4)" in str(report)
    assert try_it("softmax", wrong_from_five, minimize=False).smallest is None


def test_the_smallest_case_is_of_a_dtype_that_was_asked_for() -> None:
    report = try_it("relu", off_by_one, dtypes=["float16"])
    assert report.smallest is not None and report.smallest.result.dtype == "float16"


# The same again.


def test_a_seed_replays_the_same_bytes_and_fails_the_same_way() -> None:
    given: list[tuple[bytes, bytes]] = []

    def kernel(input: Array) -> Array:
        result = padded_softmax(input)
        given.append((input.tobytes(), result.tobytes()))
        return result

    def first_calls(**options: Any) -> tuple[gpuemu.CheckReport, list[tuple[bytes, bytes]]]:
        given.clear()
        report = try_it("softmax", kernel, dtypes=["bfloat16"], minimize=False, **options)
        return report, given[:2]

    campaign, _ = first_calls()
    failure = campaign.failures[0]
    once, calls = first_calls(replay=failure.seed)
    again, same_calls = first_calls(replay=[failure.seed])
    assert calls == same_calls and calls[0] == calls[1]
    assert (once.cases, once.report.failed) == (1, 1)
    (found,) = once.failures
    assert found.failures == failure.failures and found.case == failure.case and found.seed == failure.seed
    case = next(gpuemu.iterators.cases("softmax", 1, 1, dtypes=["bfloat16"]))
    assert case.seed == case_seed(1, 0) == failure.seed
    assert calls[0][0] == case.inputs["input"].tobytes()
    assert in_words(again) == in_words(once)


def test_the_same_seed_gives_the_same_report_and_none_gives_others() -> None:
    options = {"dtypes": FLOATS, "cases": 30}
    first, second = (try_it("softmax", padded_softmax, **options) for _ in range(2))
    assert in_words(first) == in_words(second)
    random = [try_it("relu", relu, seed=None, cases=2) for _ in range(2)]
    assert random[0].seed != random[1].seed


def test_the_line_that_reproduces_runs_the_case_that_failed() -> None:
    options: dict[str, Any] = {
        "dtypes": [np.float16],
        "sizes": {"H": (3, 9)},
        "layouts": ["transposed"],
        "values": "regular",
        "precision": gpuemu.Precision(accumulate="float16"),
        "allow": ("output_overwritten",),
    }
    report = try_it("softmax", padded_softmax, **options)
    assert report.reproduce == (
        f'gpuemu.check("softmax", padded_softmax, replay={report.failures[0].seed}, '
        "dtypes=['float16'], layouts=['transposed'], values='regular', sizes={'H': (3, 9)}, "
        "precision=gpuemu.Precision(accumulate='float16'), allow=('output_overwritten',))"
    )
    line = report.reproduce.replace("allow=", "store=False, raises=False, allow=")
    again = eval(line, {"gpuemu": gpuemu, "padded_softmax": padded_softmax})
    assert again.failures[0].case == report.failures[0].case
    assert again.failures[0].failures == report.failures[0].failures
    assert again.failures[0].replay == report.reproduce


# Precision.


def summed_in(dtype: Any) -> Any:
    """Return a product whose running sum is rounded to a dtype at every step."""

    def product(a: Array, b: Array) -> Array:
        total = np.zeros((a.shape[0], b.shape[1]), dtype)
        for k in range(a.shape[1]):
            term = a[:, k : k + 1].astype(np.float32) * b[k : k + 1].astype(np.float32)
            total = (total.astype(np.float32) + term).astype(dtype)
        result: Array = total.astype(a.dtype)
        return result

    return product


def test_long_sums_in_float32_pass() -> None:
    def in_float32(a: Array, b: Array) -> Array:
        return a @ b

    assert try_it("matmul", in_float32, sizes={"K": 2048}, cases=25)


@pytest.mark.parametrize("k", [256, 400])
def test_sums_in_bfloat16_are_caught_and_those_in_float32_are_not(k: int) -> None:
    options: dict[str, Any] = {
        "dtypes": ["bfloat16"],
        "sizes": {"K": k, "M": (1, 8), "N": (1, 8)},
        "cases": 8,
    }
    assert try_it("matmul", summed_in(np.float32), **options)
    wrong = try_it("matmul", summed_in(ml_dtypes.bfloat16), **options)
    assert wrong.status == "failed" and wrong.report.failed >= 6
    # Declared, it is allowed, and so much with it that hardly anything is left to judge.
    assert try_it("matmul", summed_in(ml_dtypes.bfloat16), precision="bfloat16", **options).report.failed == 0


# What cases are drawn from and how they are judged.


def test_what_is_asked_for_is_what_is_tried() -> None:
    seen: list[Array] = []

    def kernel(a: Array, b: Array) -> Array:
        seen.append(a)
        return matmul(a, b)

    sizes = {"K": 7, "M": (2, 3), "N": [5, 9]}
    report = try_it("matmul", kernel, sizes=sizes, dtypes=["float64"], cases=20, repeats=0)
    assert report.passed and {array.dtype.name for array in seen} == {"float64"}
    drawn = [dict(result.case["sizes"]["named"]) for result in report.report.case_results]
    assert {size["K"] for size in drawn} == {7} and {size["M"] for size in drawn} == {2, 3}
    assert {size["N"] for size in drawn} == {5, 9}
    contiguous: list[bool] = []

    def look(input: Array) -> Array:
        if min(input.shape, default=0) > 1 and input.ndim > 1:
            contiguous.append(input.flags.c_contiguous)
        return relu(input)

    assert try_it("relu", look, layouts=["contiguous"], cases=20, repeats=0) and all(contiguous)
    assert try_it("relu", look, layouts=["transposed"], cases=20, repeats=0) and not all(contiguous)


def test_values_budget_and_parameters_are_heeded() -> None:
    largest: list[int] = []
    epsilons: list[float] = []

    def rmsnorm(input: Array, weight: Array, eps: float) -> Array:
        largest.append(input.size)
        epsilons.append(eps)
        wide = input.astype(np.float64)
        scale = 1 / np.sqrt((wide**2).mean(axis=-1, keepdims=True) + eps)
        result: Array = (wide * scale * weight.astype(np.float64)).astype(input.dtype)
        return result

    report = try_it(
        "rmsnorm", rmsnorm, budget=500, kwargs={"eps": np.float64(0.5)}, values="shifted", cases=40
    )
    assert report.passed and max(largest) <= 500 and set(epsilons) == {0.5}
    wrong = try_it("rmsnorm", lambda input, weight, eps: rmsnorm(input, weight, 1e-5), kwargs={"eps": 0.5})
    assert wrong.status == "failed" and wrong.failures[0].parameters.startswith("eps=0.5")
    assert {result.values for result in try_it("relu", off_by_one, values="tiny").failures} == {"tiny"}


def test_a_tolerance_replaces_the_bound_and_a_loose_one_is_called_weak() -> None:
    def nearly(input: Array) -> Array:
        return softmax(input) * input.dtype.type(1.001)

    options: dict[str, Any] = {"values": "regular", "cases": 30}
    assert not try_it("softmax", nearly, **options)
    assert try_it("softmax", nearly, tolerance=(1e-6, 2e-3), **options)
    assert try_it("softmax", nearly, tolerance={"float32": 2e-3}, **options)
    assert not try_it("softmax", nearly, tolerance={"rtol": 1e-4}, **options)
    assert not try_it("softmax", nearly, tolerance={"float16": 2e-3}, **options)
    loose = try_it("softmax", softmax, tolerance=1.0, **options)
    assert loose.passed
    assert loose.warnings == ["weak in float32: tolerance too loose: a wrong output passed in every case"]


def test_invariants_are_asked_of_every_output() -> None:
    report = try_it("relu", relu, invariants=["finite"], values="special")
    assert report.status == "failed" and report.failures[0].failures[0].check == "invariant"
    assert try_it("relu", relu, invariants=["non_negative", "shape_preserved"], values="regular")


def test_a_declared_precision_allows_what_it_names() -> None:
    def toward_zero(input: Array) -> Array:
        wide = softmax(input.astype(np.float64))
        result = wide.astype(input.dtype)
        result = np.where(result.astype(np.float64) > wide, np.nextafter(result, input.dtype.type(0)), result)
        return result.astype(input.dtype)

    options: dict[str, Any] = {"dtypes": ["float16"], "values": "regular", "cases": 40}
    assert not try_it("softmax", toward_zero, **options)
    for precision in (gpuemu.Precision(rounding="toward_zero"), {"rounding": "toward_zero"}):
        assert try_it("softmax", toward_zero, precision=precision, **options)


OPTIONS: list[tuple[dict[str, Any], type[Exception], str]] = [
    ({"sizes": {"Q": 3}}, ClientError, "op 'softmax' has no dim 'Q'\nhint: did you mean 'H'?"),
    ({"sizes": {"H": -3}}, ValueError, "the size of 'H' is -3; it must be 0 or more"),
    (
        {"sizes": {"H": "a"}},
        TypeError,
        "the size of 'H' is 'a'; give a number, a (smallest, largest) pair or a list",
    ),
    ({"sizes": {"H": (5, 2)}}, ValueError, "the sizes of 'H' are (5, 2); a pair is (smallest, largest)"),
    ({"sizes": {"H": (1.5, 2)}}, TypeError, "a size of 'H' is 1.5; give a whole number"),
    ({"sizes": {"H": []}}, ValueError, "the sizes of 'H' are an empty list"),
    (
        {"layouts": ["odd"]},
        ClientError,
        "unknown layout 'odd'; known: contiguous, row_gap, column_step, transposed, expanded, offset, "
        "strided",
    ),
    ({"layouts": "offset"}, TypeError, "layouts is the text 'offset'; give a list, such as ['offset']"),
    ({"dtypes": "float32"}, TypeError, "dtypes is the text 'float32'; give a list, such as ['float32']"),
    ({"dtypes": []}, ClientError, "'dtypes' is empty\nhint: name at least one dtype, or leave it out"),
    ({"dtypes": ["int32"]}, ClientError, "op 'softmax' cannot be judged in int32"),
    ({"cases": -1}, ValueError, "cases is -1; it must be 1 or more"),
    ({"cases": 0}, ValueError, "cases is 0; it must be 1 or more"),
    ({"cases": 1.5}, TypeError, "cases is 1.5; give a whole number"),
    ({"seed": -1}, ValueError, "the seed -1 is not a whole number of 64 bits"),
    ({"seed": 1 << 64}, ValueError, f"the seed {1 << 64} is not a whole number of 64 bits"),
    ({"replay": "1"}, TypeError, "the seed '1' is not a whole number of 64 bits"),
    ({"replay": [1, -1]}, ValueError, "the seed -1 is not a whole number of 64 bits"),
    ({"seconds": 0}, ValueError, "seconds is 0; it must be above 0"),
    ({"budget": 0}, ValueError, "budget is 0; it must be 1 or more"),
    ({"repeats": -1}, ValueError, "repeats is -1; it must be 0 or more"),
    ({"kwargs": {"x": 1}}, ClientError, "op 'softmax' has no parameter 'x'; it has none"),
    (
        {"precision": 3},
        TypeError,
        "precision is a int; give a gpuemu.Precision, a dict, or the dtype of sums",
    ),
    (
        {"precision": gpuemu.Precision(order="tile")},
        ValueError,
        "the order of a precision is 'tile'; tile, tile_tree, split, online have a size, as in ('tile', 64)",
    ),
    ({"tolerance": -1.0}, ValueError, "a tolerance is -1.0; atol and rtol must be numbers of 0 or more"),
    ({"tolerance": (1,)}, ValueError, "a tolerance is (1,); give (atol, rtol)"),
    ({"tolerance": {"atol": 1, "rto": 2}}, ValueError, "a tolerance has atol and rtol, no 'rto'"),
    (
        {"tolerance": "a"},
        TypeError,
        "a tolerance is 'a'; give a number, (atol, rtol), or a dict by dtype",
    ),
    (
        {"invariants": ["odd"]},
        ValueError,
        "unknown invariant 'odd'; known: shape_preserved, non_negative, finite, symmetric, normalized",
    ),
    ({"invariants": "finite"}, TypeError, "invariants is the text 'finite'; give a list, such as ['finite']"),
    ({"allow": ["odd"]}, ValueError, "allow has 'odd'; what can be allowed: aliasing, output_overwritten"),
    (
        {"out": True},
        ValueError,
        "out=True, but the function has no parameter called 'out'; give its name instead",
    ),
]


@pytest.mark.parametrize(("options", "kind", "text"), OPTIONS, ids=[str(item[0]) for item in OPTIONS])
def test_an_option_that_makes_no_sense_is_refused_in_words(
    options: dict[str, Any], kind: type[Exception], text: str
) -> None:
    with pytest.raises(kind) as caught:
        gpuemu.check("softmax", softmax, store=False, **options)
    assert str(caught.value) == text


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"dtypes": ["float33"]}, "unknown dtype 'float33'; known dtypes: bool, uint8"),
        ({"values": "odd"}, "unknown value strategy 'odd'; known: regular, boundary"),
        ({"precision": "float33"}, "unknown dtype 'float33'; known dtypes: bool"),
        ({"precision": {"sums": 1}}, "a precision has no 'sums'; it has accumulate, order"),
        ({"precision": {"order": "odd"}}, "unknown order 'odd' of a precision; known: sequential, tile"),
        ({"tolerance": {"float33": 1.0}}, "unknown dtype 'float33'; known dtypes: bool"),
        ({"framework": "nump"}, "unknown framework 'nump'; did you mean 'numpy'?"),
    ],
)
def test_an_unknown_name_is_refused_with_those_that_are_known(options: dict[str, Any], text: str) -> None:
    with pytest.raises(ValueError, match="unknown|has no") as caught:
        gpuemu.check("softmax", softmax, store=False, **options)
    assert str(caught.value).startswith(text)


def test_what_is_no_op_and_no_function_is_refused() -> None:
    with pytest.raises(TypeError, match="the op is a function; give the name of an op, or what gpuemu.op"):
        gpuemu.check(softmax, softmax)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="the op under test is a int; give a function"):
        try_it("softmax", 3)
    with pytest.raises(ClientError, match="there is no folder .*nowhere for a project"):
        try_it("softmax", softmax, project="/nowhere")


def test_numbers_of_numpy_are_numbers() -> None:
    report = try_it(
        "relu", relu, seed=np.uint64(5), cases=np.int32(3), sizes={}, dtypes=[np.dtype("float32")]
    )
    assert report.seed == 5 and report.cases == 3
    assert try_it("relu", relu, replay=np.int64(5)).cases == 1


# Interruptions, time and progress.


def test_an_interrupt_inside_of_the_callable_goes_through() -> None:
    def interrupted(input: Array) -> Array:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        gpuemu.check("relu", interrupted, store=False)
    scaled = gpuemu.op("scaled", "x[N] -> out[N]", lambda x: interrupted(x))
    with pytest.raises(KeyboardInterrupt):
        gpuemu.check(scaled, lambda x: x * 2, store=False)


@pytest.mark.usefixtures("interruptible")
def test_an_interrupt_from_outside_ends_a_check() -> None:
    timer = threading.Timer(0.3, signal.raise_signal, (signal.SIGINT,))
    start = time.monotonic()
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        gpuemu.check("relu", relu, seconds=60, store=False)
    timer.join()
    assert time.monotonic() - start < 10


def test_a_reference_that_raises_is_an_error_and_no_verdict() -> None:
    def broken(x: Array) -> Array:
        raise RuntimeError("no idea")

    op = gpuemu.op("broken", "x[N] -> out[N]", broken)
    with pytest.raises(ClientError) as caught:
        gpuemu.check(op, lambda x: x * 2, store=False)
    assert caught.value.code == "ReferenceScriptFailed"
    lines = str(caught.value).splitlines()
    assert lines[0].startswith("broken: not judged after 1 case, callable ")
    assert lines[1] == "  the reference of 'broken' failed: it raised RuntimeError: no idea"
    assert lines[2].startswith("    at ") and 'raise RuntimeError("no idea")' in lines[2]
    report = try_it(op, lambda x: x * 2)
    assert (report.status, report.passed, report.failures) == ("error", False, [])


def test_a_reference_that_raises_later_does_not_hide_what_was_found() -> None:
    calls: list[int] = []

    def tired(x: Array) -> Array:
        calls.append(1)
        if len(calls) > 12:
            raise RuntimeError("tired")
        return x * 2

    report = try_it(gpuemu.op("tired", "x[N] -> out[N]", tired), lambda x: x * 3)
    assert report.status == "failed" and report.smallest is None
    text = str(report)
    assert "then it could not be judged any more: the reference of 'tired' failed: it raised" in text
    assert "passes when it is run by itself" not in text


def test_what_nothing_can_be_said_about_is_no_pass() -> None:
    with pytest.raises(ClientError, match="no case had an element to compare") as caught:
        gpuemu.check("softmax", softmax, sizes={"H": 0}, store=False)
    assert caught.value.code == "NotJudged"


def test_time_limits_progress_and_the_first_failure() -> None:
    told: list[tuple[int, int, int]] = []

    def note(done: int, planned: int, failed: int) -> None:
        told.append((done, planned, failed))

    report = try_it("relu", relu, seconds=0.4, progress=note, repeats=0)
    assert report.passed and 0.3 < report.report.seconds < 5 and report.cases > 20
    assert told and told[-1][0] <= report.cases
    assert all(done == planned and failed == 0 for done, planned, failed in told)
    told.clear()

    def slow(input: Array) -> Array:
        time.sleep(0.005)
        return relu(input)

    limited = try_it("relu", slow, cases=50, progress=note, repeats=0)
    assert limited.cases == 50 and told and {planned for _, planned, _ in told} == {50}
    assert [done for done, _, _ in told] == sorted({done for done, _, _ in told})
    assert try_it("relu", slow, cases=10_000, seconds=0.2, repeats=0).cases < 100
    first = try_it("relu", off_by_one, fail_fast=True)
    assert first.report.failed == 1 and first.cases < 20

    def enough(done: int, planned: int, failed: int) -> None:
        raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        try_it("relu", slow, cases=500, progress=enough)


# A project's ops.


PROJECT = """
[project]
name = "p"
framework = "numpy"

[[ops]]
name = "shifted"
signature = "x[N] -> out[N]"
module = "nothing_that_exists"
reference = "shifted_reference.py"

[[ops]]
name = "doubled"
signature = "x[N] -> out[N]"
module = "nothing_that_exists"
reference = "references_of_a_check:doubled"
"""

SCRIPT = """
import base64, json, sys
import numpy as np

case = json.load(sys.stdin)
x = case["inputs"]["x"]
values = np.ndarray(x["shape"], x["dtype"], base64.b64decode(x["data"])) + 3
data = base64.b64encode(values.tobytes()).decode()
out = {"data": data, "dtype": values.dtype.name, "shape": list(values.shape)}
json.dump({"outputs": {"out": out}}, sys.stdout)
"""


@pytest.fixture
def configured(project: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a project with two ops, the current folder."""
    (project / "gpuemu.toml").write_text(PROJECT)
    (project / "shifted_reference.py").write_text(SCRIPT)
    (project / "references_of_a_check.py").write_text("def doubled(x):\n    return 2 * x\n")
    monkeypatch.chdir(project)
    return project


def test_an_op_of_a_project_is_judged_by_its_own_reference(configured: Path) -> None:
    # A script is started for every question to it.
    options: dict[str, Any] = {"values": "regular", "repeats": 0, "sizes": {"N": (1, 50)}}
    assert try_it("shifted", lambda x: x + np.float32(3), cases=3, **options)
    wrong = try_it("shifted", lambda x: x + np.float32(4), minimize=False, cases=1, **options)
    assert wrong.status == "failed" and wrong.report.reference == "script shifted_reference.py"
    assert try_it("doubled", lambda x: x * 2)
    wrong = try_it("doubled", lambda x: x * 3)
    assert wrong.status == "failed"
    assert wrong.report.reference == "module references_of_a_check:doubled"
    with pytest.raises(ClientError, match="there is no op 'douled'\nhint: did you mean 'doubled'"):
        try_it("douled", relu)


def test_a_reference_of_a_project_that_raises_is_an_error(configured: Path) -> None:
    (configured / "references_of_a_check.py").write_text("def doubled(x):\n    raise KeyError('lost')\n")
    with pytest.raises(
        ClientError, match="the reference of 'doubled' failed(.|\n)*KeyError: 'lost'"
    ) as caught:
        gpuemu.check("doubled", lambda x: x * 2, store=False)
    assert caught.value.code == "ReferenceScriptFailed"


# What is stored.


@pytest.fixture
def stored(daemon_home: Path, project: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Client]:
    """Return a client of the current folder, a project without configuration."""
    monkeypatch.chdir(project)
    with Client() as client:
        yield client


def test_results_and_failures_are_stored(stored: Client, project: Path) -> None:
    passed = gpuemu.check("relu", relu, cases=10, seed=1)
    assert passed.warnings == []
    failed = gpuemu.check("softmax", padded_softmax, cases=12, seed=2, dtypes=["float16"], raises=False)
    assert len(stored.list_results("relu")) == 10 and len(stored.list_results("softmax")) == 12
    assert {result.outcome for result in stored.list_results("relu")} == {"passed"}
    failures = stored.list_failures()
    assert {failure.seed for failure in failures} == {failure.seed for failure in failed.failures}
    assert len({result.run for result in stored.list_results("softmax")}) == 1
    kept = stored.get_result(failed.failures[0].seed)
    assert kept.client_side and kept.replay == failed.reproduce
    assert kept.runner == "callable numpy_kernels.padded_softmax" and kept.settings["dtypes"] == ["float16"]
    assert kept.inputs is not None
    cases = gpuemu.iterators.cases("softmax", 12, 2, dtypes=["float16"])
    (given,) = [case.inputs["input"] for case in cases if case.seed == kept.seed]
    assert kept.inputs["input"].tobytes() == given.tobytes()


def test_the_program_lists_what_a_check_found(stored: Client, project: Path) -> None:
    program = os.environ.get("GPUEMU_TEST_PROGRAM")
    assert program, "GPUEMU_TEST_PROGRAM is not set; run the tests by `cargo xtask test`"
    (project / "gpuemu.toml").write_text('[project]\nname = "p"\nframework = "numpy"\n')
    report = gpuemu.check("relu", off_by_one, cases=3, seed=1, raises=False)
    listed = subprocess.run([program, "failures", "list"], capture_output=True, text=True, check=True)
    lines = listed.stdout.splitlines()
    assert len(lines) == report.report.failed > 0
    for failure in report.failures:
        assert any(line.startswith("relu  float32, ") and f"seed {failure.seed} " in line for line in lines)
    replayed = subprocess.run([program, "failures", "replay"], capture_output=True, text=True, check=False)
    assert f"runs in Python: {report.reproduce}" in replayed.stdout


def test_without_storing_no_daemon_is_started(unused_home: Path) -> None:
    assert not gpuemu.check("relu", off_by_one, cases=5, store=False, raises=False)
    assert not unused_home.exists()


def test_without_a_daemon_the_verdict_comes_with_a_warning(
    unused_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GPUEMU_DAEMON", str(unused_home / "none"))
    passed = gpuemu.check("relu", relu, cases=5, seed=1)
    (warning,) = passed.warnings
    assert warning.startswith(
        f"results are not stored: the daemon cannot be started: {unused_home}/none: No such file"
    )
    assert "; set GPUEMU_DAEMON" in warning
    assert f"  warning: {warning}" in str(passed)
    with pytest.raises(AssertionError, match="results are not stored: "):
        gpuemu.check("relu", off_by_one, cases=5, seed=1)
