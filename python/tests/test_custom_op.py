"""Ops that a program defines itself: `gpuemu.op`."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from numpy_kernels import Array

import gpuemu
from gpuemu.errors import ClientError


def try_it(op: Any, function: Any, **options: Any) -> gpuemu.CheckReport:
    """Run a check that stores nothing and raises nothing."""
    return gpuemu.check(op, function, **{"store": False, "raises": False, "seed": 1, **options})


def test_a_reference_is_given_float64_and_judges_every_dtype() -> None:
    given: set[str] = set()

    def reference(a: Array, b: Array) -> Array:
        given.update((a.dtype.name, b.dtype.name))
        return a + b

    add = gpuemu.op("add", "a[M,N] b[M,N] -> out[M,N]", reference)
    assert (add.name, add.signature, add.dtypes) == ("add", "a[M,N] b[M,N] -> out[M,N]", ())
    dtypes = ["float16", "bfloat16", "float32", "float64"]
    report = try_it(add, lambda a, b: a + b, dtypes=dtypes)
    assert report.passed and {counts.dtype for counts in report.report.dtypes} == set(dtypes)
    assert given == {"float64"}
    wrong = try_it(add, lambda a, b: a - b, dtypes=dtypes)
    assert wrong.status == "failed" and {result.dtype for result in wrong.failures} == set(dtypes)
    assert wrong.reproduce.startswith("gpuemu.check(add, fn, replay=")


def test_arguments_come_by_name_or_in_order() -> None:
    difference = gpuemu.op("difference", "a[N] b[N] -> out[N]", lambda a, b: a - b)
    for function in (
        lambda a, b: a - b,
        lambda b, a: a - b,
        lambda x, y: x - y,
        lambda *arrays: arrays[0] - arrays[1],
        lambda **arrays: arrays["a"] - arrays["b"],
        np.subtract,
    ):
        assert try_it(difference, function, out=False, cases=20)
    in_order = gpuemu.op("difference", "a[N] b[N] -> out[N]", lambda x, y: x - y)
    assert try_it(in_order, lambda a, b: a - b, cases=20)


def test_parameters_and_optional_inputs_reach_both() -> None:
    def scaled(x: Array, w: Array | None = None, scale: float = 2.0) -> Array:
        factor = x.dtype.type(scale)
        return x * factor if w is None else x * w * factor

    op = gpuemu.op("scaled", "x[N] w?[N] scale:float=2.0 -> out[N]", scaled)
    options = {"values": "regular"}
    assert try_it(op, scaled, **options) and try_it(op, scaled, kwargs={"scale": 3}, **options)

    def forgets_weight(x: Array, w: Array | None = None, scale: float = 2.0) -> Array:
        return x * x.dtype.type(scale)

    wrong = try_it(op, forgets_weight, kwargs={"scale": np.float32(3)}, **options)
    assert {tuple(name for name, _ in result.shapes) for result in wrong.failures} == {("x", "w")}
    assert wrong.failures[0].parameters == "scale=3.0"
    without = try_it(op, lambda x, scale: x * x.dtype.type(scale), **options)
    assert without.passed and without.warnings == ["'w' is not exercised: the function does not take it"]
    fixed = try_it(op, lambda x, w=None: scaled(x, w), **options)
    assert fixed.passed and fixed.warnings == ["'scale' is not exercised: the function does not take it"]


def statistics(a: Array) -> tuple[Array, Array]:
    return a.sum(axis=-1), a * a.dtype.type(2)


def test_several_outputs_come_as_a_tuple_or_by_name() -> None:
    def by_name(a: Array) -> dict[str, Array]:
        total, twice = statistics(a)
        return {"twice": twice, "total": total}

    def into(a: Array, out: tuple[Array, Array]) -> None:
        out[0][...], out[1][...] = statistics(a)

    for reference in (statistics, by_name):
        op = gpuemu.op("both", "a[M,N] -> total[M] twice[M,N]", reference, tolerance=(1e-2, 1e-4))
        for function in (statistics, by_name, into):
            assert try_it(op, function, values="regular", cases=30)
        wrong = try_it(op, lambda a: (statistics(a)[0], a.copy()), values="regular")
        assert {result.failures[0].tensor for result in wrong.failures} == {"twice"}
        one = try_it(op, lambda a: a, cases=5)
        assert one.failures[0].failures[0].explanation == (
            "1 outputs came back (output), the op has 2 (total, twice)"
        )
        listed = try_it(op, lambda a: list(statistics(a)), cases=5)
        assert "output 'total' is of type list, not a result" in listed.failures[0].failures[0].explanation


def test_tolerances_are_of_the_op_and_of_each_dtype() -> None:
    def nearly(x: Array) -> Array:
        return (x.astype(np.float64) * 1.001).astype(x.dtype)

    def with_tolerance(tolerance: Any) -> gpuemu.CustomOp:
        return gpuemu.op("same", "x[N] -> out[N]", lambda x: x, tolerance=tolerance)

    options: dict[str, Any] = {"values": "regular", "dtypes": ["float32", "float64"]}

    def failing(op: gpuemu.CustomOp, **more: Any) -> set[str]:
        return {result.dtype for result in try_it(op, nearly, **options, **more).failures}

    assert failing(with_tolerance(None)) == {"float32", "float64"}
    assert failing(with_tolerance({"float32": (0.0, 2e-3)})) == {"float64"}
    assert failing(with_tolerance({np.float64: 2e-3, "float32": {"rtol": 2e-3}})) == set()
    assert failing(with_tolerance(2e-3)) == set()
    # What a check says counts more than what the op says.
    assert failing(with_tolerance(2e-3), tolerance={"float64": 1e-9}) >= {"float64"}
    with pytest.raises(ValueError, match="a tolerance is -1; atol and rtol must be numbers of 0 or more"):
        with_tolerance(-1)


def test_dtypes_of_an_op_are_those_it_is_tried_in() -> None:
    op = gpuemu.op("same", "x[N] -> out[N]", lambda x: x, dtypes=[ml_dtypes.bfloat16, "float64"])
    assert op.dtypes == ("bfloat16", "float64")
    tried = {counts.dtype for counts in try_it(op, lambda x: x * 1).report.dtypes}
    assert tried == {"bfloat16", "float64"}
    tried = {counts.dtype for counts in try_it(op, lambda x: x * 1, dtypes=["bfloat16"]).report.dtypes}
    assert tried == {"bfloat16"}
    with pytest.raises(ClientError) as caught:
        try_it(op, lambda x: x * 1, dtypes=["float32"])
    assert str(caught.value) == (
        "op 'same' cannot be judged in float32\nhint: its dtypes are bfloat16, float64"
    )


WRONG = [
    (
        "a[M;K] -> o[M]",
        "signature of op 'mine', column 4: ';' has no meaning here\n  a[M;K] -> o[M]\n     ^",
    ),
    (
        "a[M,K] -> o[Q]",
        "signature of op 'mine', column 15: dim 'Q' is in no input (known: M, K)\n  a[M,K] -> o[Q]\n"
        + " " * 16
        + "^",
    ),
    (
        "a[M,K]",
        "signature of op 'mine', column 7: expected '->' and at least one output, as in "
        "a[M,K] b[K,N] -> out[M,N]\n  a[M,K]\n        ^",
    ),
]


@pytest.mark.parametrize(("signature", "text"), WRONG)
def test_a_signature_that_cannot_be_read_is_pointed_at(signature: str, text: str) -> None:
    with pytest.raises(ClientError) as caught:
        gpuemu.op("mine", signature, lambda a: a)
    assert str(caught.value) == text and caught.value.code == "InvalidRequest"


def test_what_makes_no_op_is_refused() -> None:
    with pytest.raises(TypeError, match="the reference of op 'mine' is a int; give a function"):
        gpuemu.op("mine", "a[N] -> o[N]", 3)  # type: ignore[arg-type]
    with pytest.raises(
        TypeError, match=r"dtypes of op 'mine' is the text 'float32'; give a list, such as \['f"
    ):
        gpuemu.op("mine", "a[N] -> o[N]", abs, dtypes="float32")
    with pytest.raises(ValueError, match="unknown dtype 'float3'; known dtypes: bool, uint8"):
        gpuemu.op("mine", "a[N] -> o[N]", abs, dtypes=["float3"])


def broken(x: Array) -> Array:
    raise ZeroDivisionError("one over none")


REFERENCES: dict[str, tuple[Any, str]] = {
    "wrong shape": (
        lambda x: x[:1],
        "the reference of 'mine' failed: output 'out' has shape [1], the signature makes it [1023]",
    ),
    "list": (
        lambda x: x.tolist(),
        "the reference of 'mine' failed: output 'output' is of type list, not a result that can be judged; "
        "return a numpy.ndarray",
    ),
    "nothing": (
        lambda x: None,
        "the reference of 'mine' failed: output 'output' is of type NoneType, not a result that can be "
        "judged; return a numpy.ndarray",
    ),
    "too many": (
        lambda x: (x, x),
        "the reference of 'mine' failed: 2 outputs came back (0, 1), the op has 1 (out)",
    ),
    "raises": (broken, "the reference of 'mine' failed: it raised ZeroDivisionError: one over none"),
}


@pytest.mark.parametrize("kind", REFERENCES)
def test_a_reference_that_says_nothing_is_an_error_everywhere(kind: str) -> None:
    reference, text = REFERENCES[kind]
    op = gpuemu.op("mine", "x[N] -> out[N]", reference)
    with pytest.raises(ClientError) as caught:
        gpuemu.check(op, lambda x: x, seed=1, store=False, allow=("aliasing",))
    assert caught.value.code == "ReferenceScriptFailed"
    assert str(caught.value).splitlines()[1] == f"  {text}"
    array = np.ones(1023, np.float32)
    with pytest.raises(ClientError) as caught:
        gpuemu.validate(op, [array], array)
    assert caught.value.code == "ReferenceScriptFailed"
    assert str(caught.value).splitlines()[0] == text
