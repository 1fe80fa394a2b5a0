"""Blocks in which kernels of one framework are validated."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy_kernels import Array, padded_softmax, relu, softmax

import gpuemu
from gpuemu.errors import ValidationError
from gpuemu.frameworks import Validation, adapter, current_adapter

pytest_plugins = ["daemon_fixtures"]

NUMBERS = np.linspace(-1, 1, 12, dtype=np.float32).reshape(3, 4)


def rmsnorm(input: Array, weight: Array, eps: float) -> Array:
    wide = input.astype(np.float64)
    scale = 1 / np.sqrt((wide**2).mean(axis=-1, keepdims=True) + eps)
    result: Array = (wide * scale * weight).astype(input.dtype)
    return result


def test_a_block_names_every_failure_at_its_end() -> None:
    validation = Validation(adapter("numpy"))
    with pytest.raises(ValidationError) as caught, validation:
        assert current_adapter() is adapter("numpy")
        right = validation.check("relu", relu, cases=5, store=False)
        wrong = validation.check("softmax", padded_softmax, cases=5, seed=1, store=False)
        output = validation.run("rmsnorm", rmsnorm, NUMBERS, np.ones(4, np.float32), eps=0.5)
        assert np.array_equal(output, rmsnorm(NUMBERS, np.ones(4), 0.5))
        validation.run("softmax", lambda x: 2 * softmax(x), NUMBERS)
    assert right.passed and not wrong.passed
    assert [result.passed for result in validation.results] == [True, False, True, False]
    lines = str(caught.value).splitlines()
    assert lines[0] == "2 of 4 validations failed:"
    assert lines[1] == "softmax: 4 of 5 cases failed (float32), callable numpy_kernels.padded_softmax"
    (place,) = [index for index, line in enumerate(lines) if line.startswith("  reproduce: gpuemu.check(")]
    assert lines[place + 1].startswith("softmax: failed (float32, ...=3 H=4, contiguous, seed ")
    assert lines[place + 2].startswith("  value: 12 of 12 elements of 'out' differ; rows sum to 2.0")
    assert current_adapter() is None


def test_a_function_that_overwrites_its_input_is_judged_by_what_it_was_given() -> None:
    def in_place(input: Array) -> Array:
        np.maximum(input, 0, out=input)
        return input

    array = NUMBERS.copy()
    with Validation(adapter("numpy")) as validation:
        assert validation.run("relu", in_place, array) is array
    (result,) = validation.results
    assert result.passed and result.elements.compared == 12


def test_parameters_are_those_that_the_function_was_given() -> None:
    with Validation(adapter("numpy"), raise_on_exit=False) as validation:
        weight = np.ones(4, np.float32)
        validation.run("rmsnorm", rmsnorm, NUMBERS, weight, eps=np.float64(0.5))
        validation.run("rmsnorm", rmsnorm, NUMBERS, weight=weight, eps=0.5)
        validation.run("rmsnorm", lambda x, w, eps: rmsnorm(x, w, 0.25), NUMBERS, weight, eps=0.5)
    assert [result.passed for result in validation.results] == [True, True, False]
    assert validation.results[2].parameters.startswith("eps=0.5")


def test_ops_of_a_program_are_validated_by_their_own_name() -> None:
    increment = gpuemu.op("increment", "x[N] -> out[N]", lambda x: x + 1)
    with pytest.raises(ValidationError) as caught, Validation(adapter("numpy")) as validation:
        validation.check(increment, lambda x: x + 1, cases=5, store=False)
        validation.run(increment, lambda x: x + 2, NUMBERS[0])
    assert str(caught.value).startswith("1 of 2 validations failed:\nincrement: failed (float32, N=4, ")


def test_an_exception_of_the_block_goes_through() -> None:
    with pytest.raises(KeyError, match="mine"), Validation(adapter("numpy")) as validation:
        validation.check("softmax", padded_softmax, cases=5, seed=1, store=False)
        raise KeyError("mine")
    assert len(validation.results) == 1 and not validation.results[0].passed
    assert current_adapter() is None


def test_a_block_may_leave_failures_to_the_caller() -> None:
    with Validation(adapter("numpy"), raise_on_exit=False) as validation:
        validation.check("softmax", padded_softmax, cases=5, seed=1, store=False)
    assert not validation.results[0].passed


def test_results_of_a_block_are_stored(
    daemon_home: Path, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(project)
    with Validation(adapter("numpy"), raise_on_exit=False) as validation:
        validation.check("softmax", padded_softmax, cases=5, seed=1)
    with gpuemu.Client() as client:
        assert len(client.list_results("softmax")) == 5


def test_a_validation_is_used_within_its_block_alone() -> None:
    validation = Validation(adapter("numpy"))
    calls: list[Any] = []
    with pytest.raises(RuntimeError, match="use `with"):
        validation.run("relu", calls.append, 1)
    with validation, pytest.raises(RuntimeError, match="already in use"):
        validation.__enter__()
    with validation:
        assert validation.results == []
    with pytest.raises(RuntimeError, match="use `with"):
        validation.check("relu", relu)
    assert calls == []
