"""`gpuemu.validate`: outputs that were computed already."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from numpy_kernels import matmul, softmax

import gpuemu
from gpuemu.errors import ClientError, ValidationError

pytest_plugins = ["daemon_fixtures"]

NUMBERS = np.linspace(-1, 1, 35, dtype=np.float32).reshape(5, 7)
RIGHT = softmax(NUMBERS)


def test_inputs_come_by_name_or_in_the_order_of_the_op() -> None:
    a, b = NUMBERS, NUMBERS.T.copy()
    product = matmul(a, b)
    inputs: list[Any] = [{"a": a, "b": b}, {"b": b, "a": a}, [a, b], (a, b)]
    for given in inputs:
        result = gpuemu.validate("matmul", given, product)
        assert result.passed and result.outcome == "passed" and result.elements.compared == 25
    swapped = gpuemu.validate("matmul", [b, a], np.zeros((7, 7), np.float32))
    assert not swapped.passed and swapped["shapes"] == [("a", (7, 5)), ("b", (5, 7))]


def test_what_needs_a_second_run_is_said_not_to_be_checked() -> None:
    result = gpuemu.validate("softmax", [NUMBERS], RIGHT)
    assert result.runner == "submitted output"
    assert {"determinism", "modified inputs", "stores out of bounds"} <= set(result.not_checked)


def test_several_outputs_come_as_a_tuple_or_by_name() -> None:
    op = gpuemu.op("both", "a[M,N] -> total[M] twice[M,N]", lambda a: (a.sum(axis=-1), 2 * a))
    total, twice = NUMBERS.sum(axis=-1), 2 * NUMBERS
    for output in ((total, twice), {"twice": twice, "total": total}):
        assert gpuemu.validate(op, [NUMBERS], output).passed
    result = gpuemu.validate(op, [NUMBERS], (total, twice + 1))
    assert [finding.tensor for finding in result.failures] == ["twice"]
    for output, text in (
        ((total,), r"1 outputs came back \(total\), the op has 2 \(total, twice\)"),
        ({"total": total, "double": twice}, "output 'twice' is missing; what came back: total, double"),
    ):
        with pytest.raises(ClientError, match=text):
            gpuemu.validate(op, [NUMBERS], output)
    with pytest.raises(ValueError, match="3 outputs were given, but the op has 2: total, twice"):
        gpuemu.validate(op, [NUMBERS], (total, twice, twice))


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16, ml_dtypes.bfloat16])
def test_strided_arrays_are_judged_as_they_are(dtype: Any) -> None:
    values = np.random.default_rng(1).standard_normal((6, 40, 2)).astype(dtype)
    views = [values.transpose(2, 0, 1), values[::-1, ::2], values[:, ::-3, ::-1], values[:, :, :1], values[3]]
    views += [np.broadcast_to(values[:, :1], values.shape), values.astype(values.dtype.newbyteorder(">"))]
    for view in views:
        right = softmax(view.astype(dtype))
        assert gpuemu.validate("softmax", [view], right).passed
        large = np.zeros((*right.shape, 2), dtype)
        large[..., 0] = right
        assert gpuemu.validate("softmax", [view], large[..., 0]).passed
        wrong = right.copy()
        wrong[(0,) * wrong.ndim] = 2
        assert not gpuemu.validate("softmax", [view], wrong).passed


def test_a_failure_is_raised_where_that_is_asked_for() -> None:
    assert gpuemu.validate("softmax", [NUMBERS], RIGHT, raises=True).passed
    with pytest.raises(ValidationError) as caught:
        gpuemu.validate("softmax", [NUMBERS], 2 * RIGHT, raises=True)
    result = caught.value.result
    assert result is not None and not result.passed
    assert result.failures[0].bug_class == "scale"
    assert str(caught.value) == result.summary
    lines = result.summary.splitlines()
    assert lines[0].startswith("softmax: failed (float32, ...=5 H=7, contiguous, seed ")
    assert lines[1].startswith("  value: 35 of 35 elements of 'out' differ; rows sum to 2.0")
    assert lines[2].startswith("    worst at [")


def test_outputs_of_another_form_are_told_apart() -> None:
    result = gpuemu.validate("softmax", [NUMBERS], RIGHT[:, :5])
    assert [(finding.check, finding.explanation) for finding in result.failures] == [
        ("shape", "output 'out' has shape [5, 5], expected [5, 7]")
    ]
    result = gpuemu.validate("softmax", [NUMBERS], RIGHT.astype(np.float64))
    assert [(finding.check, finding.explanation) for finding in result.failures] == [
        ("dtype", "output 'out' is float64, expected float32")
    ]


REFUSED: list[tuple[Any, Any, dict[str, Any], type[Exception], str]] = [
    (
        [NUMBERS],
        RIGHT,
        {"kwargs": {"axis": 1}},
        ClientError,
        "op 'softmax' has no parameter 'axis'; it has none",
    ),
    (
        NUMBERS,
        RIGHT,
        {},
        TypeError,
        "inputs are a ndarray; give a dict of arrays by name, or a list in the op's order",
    ),
    ([NUMBERS, NUMBERS], RIGHT, {}, ValueError, "2 inputs were given, but the op has 1: input"),
    ([], RIGHT, {}, ClientError, "op 'softmax': input 'input' is missing"),
    ({"inpt": NUMBERS}, RIGHT, {}, ClientError, "op 'softmax': the op has no input 'inpt'; it takes input"),
    (
        [[1.0]],
        RIGHT,
        {},
        TypeError,
        "input 'input': list is no array that gpuemu can read; it reads numpy.ndarray, torch.Tensor, "
        "jax.Array, eager tf.Tensor or tf.Variable",
    ),
    (
        [NUMBERS],
        [1.0],
        {},
        TypeError,
        "output 'out': list is no array that gpuemu can read; it reads numpy.ndarray, torch.Tensor, "
        "jax.Array, eager tf.Tensor or tf.Variable",
    ),
    ([NUMBERS], None, {}, ClientError, "0 outputs came back (), the op has 1 (out)"),
    (
        [NUMBERS],
        RIGHT,
        {"tolerance": -1},
        ValueError,
        "a tolerance is -1; atol and rtol must be numbers of 0 or more",
    ),
]


@pytest.mark.parametrize(("inputs", "output", "options", "kind", "text"), REFUSED)
def test_what_cannot_be_judged_is_refused_in_words(
    inputs: Any, output: Any, options: dict[str, Any], kind: type[Exception], text: str
) -> None:
    with pytest.raises(kind) as caught:
        gpuemu.validate("softmax", inputs, output, **options)
    assert str(caught.value) == text


def test_a_value_outside_of_its_domain_is_named_with_its_index() -> None:
    logits = np.zeros((3, 4), dtype=np.float32)
    loss = np.full(3, np.log(4.0), dtype=np.float32)
    assert gpuemu.validate("cross_entropy", [logits, np.array([0, 1, 3])], loss).passed
    with pytest.raises(ClientError) as caught:
        gpuemu.validate("cross_entropy", [logits, np.array([0, 7, 3])], loss)
    text = "op 'cross_entropy': input 'target' has 7 at [1], outside of 0..V"
    assert str(caught.value).startswith(text), str(caught.value)


OUTSIDE = [
    (
        "batch_norm",
        {
            "input": np.ones((2, 3, 4), np.float32),
            "running_mean": np.zeros(3, np.float32),
            "running_var": np.array([1, -0.5, 1], np.float32),
        },
        np.ones((2, 3, 4), np.float32),
        "input 'running_var' has -0.5 at [1], outside of the numbers from 0",
    ),
    (
        "embedding",
        {"indices": np.array([[0, 1], [2, 9]]), "weight": np.ones((5, 2), np.float32)},
        np.ones((2, 2, 2), np.float32),
        "input 'indices' has 9 at [1, 1], outside of 0..V (0..5)",
    ),
    (
        "moe_unpermute",
        {
            "permuted": np.ones((4, 2), np.float32),
            "row_id": np.array([0, 1, 1, 3], np.int32),
            "topk_weights": np.ones((2, 2), np.float32),
        },
        np.ones((2, 2), np.float32),
        "input 'row_id' has 1 at [2], outside of a permutation of 0..4: each number once",
    ),
]


@pytest.mark.parametrize(("op", "inputs", "output", "text"), OUTSIDE)
def test_domains_of_other_kinds_are_named_too(
    op: str, inputs: dict[str, Any], output: Any, text: str
) -> None:
    with pytest.raises(ClientError) as caught:
        gpuemu.validate(op, inputs, output)
    assert str(caught.value).startswith(f"op '{op}': {text}")


def test_a_target_that_is_ignored_is_no_violation() -> None:
    logits, target = np.zeros((2, 3), np.float32), np.array([-100, 1])
    loss = np.array([0, np.log(3)], np.float32)
    assert gpuemu.validate("cross_entropy", [logits, target], loss).passed


def test_other_things_that_are_refused() -> None:
    with pytest.raises(TypeError, match="input 'input': has the dtype complex64, which gpuemu lacks"):
        gpuemu.validate("softmax", [NUMBERS.astype(np.complex64)], RIGHT)
    with pytest.raises(
        ClientError, match="op 'matmul': input 'b' has size 5 along dim 0, but 'K' elsewhere is 7"
    ):
        gpuemu.validate("matmul", [NUMBERS, NUMBERS], RIGHT)
    with pytest.raises(ClientError, match="there is no op 'softmx'\nhint: did you mean 'softmax'?"):
        gpuemu.validate("softmx", [NUMBERS], RIGHT)
    with pytest.raises(TypeError, match="the op is a int; give the name of an op, or what gpuemu.op returns"):
        gpuemu.validate(3, [NUMBERS], RIGHT)  # type: ignore[arg-type]


def test_parameters_tolerances_and_precision_count() -> None:
    wide = NUMBERS.astype(np.float64)
    output = (wide / np.sqrt((wide**2).mean(axis=-1, keepdims=True) + 0.5)).astype(np.float32)
    inputs = [NUMBERS, np.ones(7, np.float32)]
    assert gpuemu.validate("rmsnorm", inputs, output, kwargs={"eps": np.float32(0.5)}).passed
    assert not gpuemu.validate("rmsnorm", inputs, output).passed
    # As they would be written in a call.
    weight, array = {"weight": inputs[1]}, np.array(0.5)
    assert gpuemu.validate("rmsnorm", [NUMBERS], output, kwargs={**weight, "eps": array}).passed
    nearly = RIGHT * np.float32(1.001)
    assert not gpuemu.validate("softmax", [NUMBERS], nearly).passed
    assert gpuemu.validate("softmax", [NUMBERS], nearly, tolerance=2e-3).passed
    assert gpuemu.validate("softmax", [NUMBERS], nearly, precision="bfloat16").passed
    infinite = np.array([1.0, np.inf], np.float32)
    assert gpuemu.validate("relu", [infinite], infinite).passed
    assert not gpuemu.validate("relu", [infinite], infinite, invariants=["finite"]).passed


def test_an_op_of_a_project_is_found_in_its_folder(project: Path) -> None:
    (project / "gpuemu.toml").write_text(
        '[project]\nname = "p"\nframework = "numpy"\n\n'
        '[[ops]]\nname = "doubled"\nsignature = "x[N] -> out[N]"\n'
        'module = "nothing"\nreference = "references_of_validate:doubled"\n'
    )
    (project / "references_of_validate.py").write_text("def doubled(x):\n    return 2 * x\n")
    array = NUMBERS[0]
    assert gpuemu.validate("doubled", [array], 2 * array, project=project).passed
    assert not gpuemu.validate("doubled", [array], 3 * array, project=project).passed
