"""A kernel that changes how its thread computes is found, and does not change how it is judged."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import Any

import float_environment_kernels as kernels
import pytest

import gpuemu

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="it is changed by the C library of Linux")

OPTIONS: dict[str, Any] = {
    "cases": 10,
    "seed": 1,
    "values": "regular",
    "store": False,
    "raises": False,
    "minimize": False,
}


@pytest.fixture(autouse=True)
def standard() -> Iterator[None]:
    """Leave nothing of it to other tests."""
    yield
    kernels.round_to_nearest()
    kernels.flush(False)


def computes_as_standard() -> bool:
    """Whether this thread rounds to nearest and has subnormal numbers."""
    one, little, subnormal, large = 1.0, 1e-30, 5e-324, 2.0**1000
    return one + little == one and subnormal * large > 0


@pytest.mark.parametrize(
    ("kernel", "words"),
    [
        (kernels.rounds_up, "numbers are rounded up"),
        (kernels.flushes, "flushed to zero"),
    ],
)
def test_what_a_call_leaves_behind_is_a_finding_and_ends_with_it(
    kernel: Callable[..., Any], words: str
) -> None:
    report = gpuemu.check("relu", kernel, **OPTIONS)
    assert len(report.failures) == report.report.cases == 10
    for failure in report.failures:
        assert [finding.check for finding in failure.failures] == ["float_environment"]
        assert words in failure.failures[0].explanation
    assert computes_as_standard()


def test_what_is_set_back_is_none() -> None:
    report = gpuemu.check("relu", kernels.rounds_up_for_itself, **OPTIONS)
    assert report and computes_as_standard()


def test_what_was_changed_before_is_a_note_and_stays_as_it_was() -> None:
    kernels.round_up()
    report = gpuemu.check("relu", kernels.relu, **OPTIONS)
    assert not computes_as_standard()
    kernels.round_to_nearest()
    assert report
    (note,) = [warning for warning in report.warnings if "floating-point environment" in warning]
    assert "numbers are rounded up" in note
