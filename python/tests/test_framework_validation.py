from __future__ import annotations

import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

from gpuemu.frameworks import Validation, adapter, current_adapter


class FoundError(AssertionError):
    pass


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Stand in for the functions that judge."""
    import gpuemu

    found: list[Any] = []

    def check(op: str, function: Any, *, raises: bool = True, **options: Any) -> Any:
        found.append((op, current_adapter(), raises, options))
        return function()

    def validate(op: str, inputs: Any, output: Any, *, kwargs: Any = None, raises: bool = False) -> Any:
        found.append((op, current_adapter(), inputs, output, kwargs, raises))
        return Result(bool(np.all(output == inputs[0] + 1)))

    errors = ModuleType("gpuemu.errors")
    errors.ValidationError = FoundError
    monkeypatch.setitem(sys.modules, "gpuemu.errors", errors)
    monkeypatch.setattr(gpuemu, "check", check, raising=False)
    monkeypatch.setattr(gpuemu, "validate", validate, raising=False)
    return found


class Result(SimpleNamespace):
    def __init__(self, passed: bool) -> None:
        super().__init__(passed=passed)

    def __str__(self) -> str:
        return "passed" if self.passed else "off by one"


def test_a_block_names_every_failure_at_its_end(calls: list[Any]) -> None:
    validation = Validation(adapter("numpy"))
    with pytest.raises(FoundError) as caught, validation:
        assert current_adapter() is adapter("numpy")
        validation.check("softmax", lambda: Result(True), cases=3)
        validation.check("relu", lambda: Result(False))
        output = validation.run("increment", lambda x, by: x + by, np.zeros(3), by=2)
        assert output.tolist() == [2, 2, 2]
    assert str(caught.value) == "2 of 3 validations failed:\nrelu: off by one\nincrement: off by one"
    assert [result.passed for result in validation.results] == [True, False, False]
    assert calls[0] == ("softmax", adapter("numpy"), False, {"cases": 3})
    assert calls[2][4:] == ({"by": 2}, False)
    assert current_adapter() is None


def test_a_function_that_overwrites_its_input_is_judged_by_what_it_was_given(calls: list[Any]) -> None:
    def increment(x: Any) -> Any:
        x += 1
        return x

    array = np.arange(3.0)
    with Validation(adapter("numpy")) as validation:
        assert validation.run("increment", increment, array) is array
    assert calls[0][2][0].tolist() == [0, 1, 2]
    assert validation.results[0].passed


def test_an_exception_of_the_block_goes_through(calls: list[Any]) -> None:
    with pytest.raises(KeyError, match="mine"), Validation(adapter("numpy")) as validation:
        validation.check("relu", lambda: Result(False))
        raise KeyError("mine")
    assert len(validation.results) == 1
    assert current_adapter() is None


def test_a_block_may_leave_failures_to_the_caller(calls: list[Any]) -> None:
    with Validation(adapter("numpy"), raise_on_exit=False) as validation:
        validation.check("relu", lambda: Result(False))
    assert not validation.results[0].passed
    with validation:
        pass
    assert validation.results == []


def test_a_validation_is_used_within_its_block_alone(calls: list[Any]) -> None:
    validation = Validation(adapter("numpy"))
    with pytest.raises(RuntimeError, match="raised by nobody"):
        validation.check("relu", lambda: Result(True))
    with validation, pytest.raises(RuntimeError, match="already in use"):
        validation.__enter__()
