"""Functions get their inputs where their signatures have room for them, and what they return is looked at."""

from __future__ import annotations

from typing import Any

import cheating_kernels as cheats
import numpy as np
import pytest

import gpuemu


def layer_norm(x: Any, weight: Any = None, bias: Any = None, eps: float = 1e-5) -> Any:
    wide = x.astype(np.float64)
    centred = wide - wide.mean(-1, keepdims=True)
    y = centred / np.sqrt((centred**2).mean(-1, keepdims=True) + eps)
    y = y if weight is None else y * weight
    return (y if bias is None else y + bias).astype(x.dtype)


@pytest.mark.parametrize(
    "function",
    [
        layer_norm,
        lambda x: layer_norm(x),
        lambda x, w, b: layer_norm(x, w, b),
        lambda x, gamma: layer_norm(x, gamma),
        lambda input, weight, bias: layer_norm(input, weight, bias),
        lambda x, bias=None, weight=None: layer_norm(x, weight, bias),
        lambda inputs: layer_norm(inputs["input"], inputs.get("weight"), inputs.get("bias")),
    ],
)
def test_optional_inputs_reach_every_signature(function: Any) -> None:
    sizes = {"H": (1, 80)}
    report = gpuemu.check("layernorm", function, sizes=sizes, values="regular", cases=40, seed=3, store=False)
    assert report.report.passed >= 35


def relu(input: Any) -> Any:
    return np.maximum(input, 0)


def test_a_function_that_ends_the_program_is_reported_not_obeyed() -> None:
    report = gpuemu.check("relu", cheats.ends_the_program, cases=3, store=False, raises=False)
    assert report.status == "failed"
    assert "raised SystemExit: 0" in str(report)


def test_with_out_nothing_else_may_be_returned() -> None:
    assert gpuemu.check("relu", cheats.returns_out, cases=20, store=False)
    report = gpuemu.check("relu", cheats.returns_other_than_out, cases=20, store=False, raises=False)
    assert "took `out=` and returned another array" in str(report)


def test_memory_that_is_used_in_turns_is_found() -> None:
    report = gpuemu.check("relu", cheats.reused_in_turns(), cases=40, store=False, raises=False, seed=1)
    assert "output_overwritten" in str(report)


def test_outputs_that_nobody_judged_are_named() -> None:
    def attention(q: Any, k: Any, v: Any) -> Any:
        return np.zeros_like(q), np.zeros(3)

    report = gpuemu.check("attention", attention, cases=3, store=False, raises=False)
    assert "optional outputs" in report.report.not_checked


def test_results_say_whether_they_passed_where_a_truth_is_asked_for() -> None:
    ones = np.ones(3, np.float32)
    assert gpuemu.validate("relu", [ones], ones)
    assert not gpuemu.validate("relu", [ones], np.zeros(3, np.float32))
    empty = np.zeros((0, 3), np.float32)
    result = gpuemu.validate("relu", [empty], empty)
    assert not result and result.outcome == "undetermined"


def test_a_tolerance_without_a_dtype_holds_for_integers_too() -> None:
    op = gpuemu.op("copy", "x:int32[N] -> out:int32[N]", lambda x: x)
    options = {"tolerance": (5, 0), "cases": 10, "store": False, "values": "regular", "seed": 1}
    assert gpuemu.check(op, lambda x: x + 1, **options)
    assert not gpuemu.check(op, lambda x: x + 9, raises=False, **options)


def test_a_failure_that_needs_the_calls_before_it_prints_the_whole_run() -> None:
    calls = [0]

    def tiring(input: Any) -> Any:
        calls[0] += 1
        return relu(input) * np.float32(1.5 if calls[0] > 200 else 1)

    report = gpuemu.check("relu", tiring, seed=1, cases=20, store=False, raises=False)
    assert "right in the first calls only" in str(report)
    assert "seed=1, cases=20" in report.reproduce


def test_an_empty_replay_is_refused() -> None:
    with pytest.raises(ValueError, match="replay is an empty list"):
        gpuemu.check("relu", relu, replay=[], store=False)


def test_a_control_of_another_shape_calibrates_nothing() -> None:
    from gpuemu.tolerances import calibrate_tolerance

    with pytest.raises(gpuemu.ClientError, match="expected float32"):
        calibrate_tolerance(None, "relu", control=lambda x: x.astype(np.float16), seed=1)
