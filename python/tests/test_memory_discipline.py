"""Functions that cheat, or handle memory badly: each is reported for what it does, and right ones pass."""

from __future__ import annotations

from collections import Counter
from typing import Any

import cheating_kernels as cheats
import numpy as np
import own_op_kernels as own
import pytest
from cheating_kernels import Kernel, cached_by, relu_kernel, reused, right_for, sum_in_any_order
from cheating_ops import FINE
from numpy_kernels import Array, relu

import gpuemu


def try_it(function: Kernel, op: Any = "relu", **options: Any) -> gpuemu.CheckReport:
    """Run a check that stores nothing and raises nothing."""
    return gpuemu.check(
        op, function, **{"store": False, "raises": False, "seed": 1, "minimize": False, **options}
    )


def kinds(report: gpuemu.CheckReport) -> Counter[tuple[str, str]]:
    """Count what the failing cases were failed for: the check, and the class of the bug."""
    assert report.status == "failed", str(report)
    return Counter((result.failures[0].check, result.failures[0].bug_class) for result in report.failures)


def first(report: gpuemu.CheckReport) -> tuple[str, str, str]:
    """Return the check, the class and the words of the first failure."""
    finding = report.failures[0].failures[0]
    return finding.check, finding.bug_class, finding.explanation


# Inputs.


def test_an_input_that_is_overwritten() -> None:
    report = try_it(cheats.overwrites)
    assert set(kinds(report)) == {("input_modified", "input_overwritten")}
    assert (
        first(report)[2]
        == "the kernel wrote over its input 'input' (39 elements, the first at storage element 0)"
    )


def test_a_write_behind_an_input() -> None:
    assert ("out_of_bounds", "out_of_bounds") in kinds(try_it(cheats.writes_behind))


@pytest.mark.parametrize(
    "function",
    [
        cheats.returns_input,
        cheats.returns_view,
        cheats.returns_transposed_twice,
        cheats.returns_other_view,
    ],
)
def test_an_input_that_is_returned(function: Kernel) -> None:
    report = try_it(function)
    assert set(kinds(report)) == {("aliasing", "input_returned")}
    assert first(report)[2].startswith("'out' lies in the memory of the input 'input': ")


def test_a_copy_of_an_input() -> None:
    report = try_it(cheats.copies_input)
    assert {bug for _, bug in kinds(report)} == {"input_returned"}
    assert first(report)[:2] == ("value", "input_returned")
    assert first(report)[2].endswith("; it is the input 'input', bit for bit")


# Outputs that are no results.


def test_constants_and_zeros() -> None:
    for function in (cheats.threes, cheats.zeros):
        report = try_it(function)
        assert first(report)[:2] == ("value", "constant")
        assert first(report)[2].endswith("; it is the same, bit for bit, for other inputs of that shape")
        assert kinds(report)["value", "constant"] >= 40


def test_memory_that_was_never_written() -> None:
    report = try_it(cheats.never_written)
    # Now and then the allocator hands out other memory than what was poisoned; that is wrong as well.
    assert kinds(report)["not_written", "never_written"] > 30


# Results that are kept.


def test_a_result_cached_by_the_address_of_the_data() -> None:
    report = try_it(cached_by(cheats.address))
    assert first(report)[:2] == ("stale_result", "cached_by_address")
    assert "although the inputs at the same addresses have changed" in first(report)[2]


def test_a_result_cached_by_the_identity_of_the_array() -> None:
    report = try_it(cached_by(cheats.identity))
    assert first(report)[:2] == ("stale_result", "cached_by_address")
    assert kinds(report)["stale_result", "cached_by_address"] > 20


def test_a_result_cached_by_shape() -> None:
    report = try_it(cached_by(cheats.shape))
    # Whatever the data and wherever it lies.
    assert kinds(report)["value", "constant"] > 20


def test_an_output_that_is_used_again() -> None:
    report = try_it(reused(), layouts=["contiguous"])
    assert set(kinds(report)) == {("output_overwritten", "reused_output")}
    assert first(report)[2].startswith("'out' of an earlier call changed when the function was called again")
    assert try_it(reused(), allow=("output_overwritten",))


# Right at times.


@pytest.mark.parametrize("calls", [2, 50, 150])
def test_right_for_fewer_calls_than_the_cases_make(calls: int) -> None:
    report = try_it(right_for(calls))
    assert first(report)[1] == "first_calls_only"
    assert first(report)[2].endswith(
        "the case with seed 11967340547968660931, which passed before, fails now too: right in the first "
        "calls only"
    )


def test_right_for_the_first_call_alone() -> None:
    assert first(try_it(right_for(1)))[:2] == ("nondeterministic", "race")


def test_right_for_more_calls_than_the_cases_make() -> None:
    report = try_it(right_for(700))
    assert first(report)[:2] == ("later_calls", "first_calls_only")
    assert first(report)[2].startswith("the case passed at first and fails when it is repeated ")
    assert report.report.failed == 1
    assert try_it(right_for(700), repeats=0).passed


def test_right_for_the_first_call_of_each_shape() -> None:
    report = try_it(cheats.right_for_new_shapes())
    assert first(report)[0] == "nondeterministic"
    assert kinds(report)["nondeterministic", "race"] > 20


def test_results_that_differ_from_run_to_run() -> None:
    report = try_it(sum_in_any_order(), "sum")
    assert first(report)[:2] == ("nondeterministic", "race")
    assert first(report)[2].endswith("if sums by atomics are meant, declare `atomics`")
    assert try_it(sum_in_any_order(), "sum", precision=gpuemu.Precision(atomics=True))


# Outputs that are handed over.


def test_a_tail_that_is_not_written() -> None:
    report = try_it(cheats.without_tail)
    assert set(kinds(report)) == {("not_written", "never_written")}
    assert first(report)[2] == "3 of 39 elements of 'out' were never written, the first at flat index 36"


def test_a_write_past_the_end_that_leaves_every_value_right() -> None:
    report = try_it(cheats.past_the_end)
    assert set(kinds(report)) == {("out_of_bounds", "out_of_bounds")}
    assert first(report)[2] == "the kernel wrote 4 bytes outside of 'out', the nearest 0 bytes after the end"


def test_an_output_that_is_ignored() -> None:
    report = try_it(cheats.ignores_out)
    assert set(kinds(report)) <= {("runner", "crash"), ("not_written", "never_written")}
    assert "took `out=` and returned another array" in first(report)[2]


def test_functions_that_fill_their_output_pass_and_everything_is_checked() -> None:
    def named_otherwise(input: Array, result: Array) -> None:
        result[...] = relu(input)

    for function, out in (
        (cheats.returns_out, None),
        (cheats.fills_out, True),
        (named_otherwise, "result"),
    ):
        report = try_it(function, out=out)
        assert report.passed and report.report.not_checked == []
    assert try_it(lambda input, out=None: relu(input), out=False).passed


# Things that are no arrays, or not the right ones.


NOT_JUDGED = "not a result that can be judged; return"
#: What is said of each.
NO_RESULTS = {
    "lazy": f"output 'out' is of type cheating_kernels.Lazy, {NOT_JUDGED} a numpy.ndarray",
    "subclass": (
        "output 'out' is of type cheating_kernels.Special, a subclass of numpy.ndarray, "
        f"{NOT_JUDGED} numpy.array(…) of it"
    ),
    "a_list": f"output 'out' is of type list, {NOT_JUDGED} a numpy.ndarray",
    "nothing": f"output 'out' is of type NoneType, {NOT_JUDGED} a numpy.ndarray",
    "two": "2 outputs came back (0, 1), the op has 1 (out)",
    "none_of_one": "0 outputs came back (), the op has 1 (out)",
    "two_by_name": "2 outputs came back (out, other), the op has 1 (out)",
    "a_list_in_a_tuple": f"output 'out' is of type list, {NOT_JUDGED} a numpy.ndarray",
}


@pytest.mark.parametrize("kind", NO_RESULTS)
def test_what_is_no_result_is_refused_by_its_type(kind: str) -> None:
    report = try_it(getattr(cheats, kind), cases=10)
    assert first(report) == ("runner", "crash", NO_RESULTS[kind])
    assert report.report.failed == 10


def test_a_result_of_another_form() -> None:
    report = try_it(cheats.another_shape, cases=10)
    assert first(report) == ("shape", "crash", "output 'out' has shape [1, 3, 13], expected [3, 13]")
    report = try_it(cheats.another_dtype, cases=10)
    assert first(report) == ("dtype", "crash", "output 'out' is float64, expected float32")
    report = try_it(cheats.unknown_dtype, cases=10)
    assert first(report)[0] == "runner" and "unknown dtype 'complex64'" in first(report)[2]


def test_a_function_that_raises() -> None:
    report = try_it(cheats.raises, cases=10)
    check, bug_class, words = first(report)
    assert (check, bug_class) == ("runner", "crash")
    lines = words.splitlines()
    assert lines[0] == "the callable raised RuntimeError: out of registers"
    assert len(lines) == 2 and lines[1].startswith("  at ")
    assert lines[1].endswith('in raises: raise RuntimeError("out of registers")')


def test_several_outputs_under_wrong_names() -> None:
    halves = gpuemu.op("halves", "x[N] -> low[N] high[N]", own.halves)
    assert try_it(own.halves_by_name, halves)
    assert try_it(own.halves, halves)
    swapped = try_it(own.halves_swapped, halves)
    assert first(swapped)[0] == "value" and swapped.failures[0].failures[0].tensor == "low"
    wrong = try_it(own.halves_misnamed, halves)
    assert first(wrong) == ("runner", "crash", "output 'low' is missing; what came back: high, lower")


# What is fine.


@pytest.mark.parametrize("kind", FINE)
def test_right_functions_pass_whatever_memory_they_return(kind: str) -> None:
    report = try_it(getattr(cheats, kind), dtypes=["float32", "float16"])
    assert report.passed, str(report)


def test_returning_an_input_is_allowed_where_it_is_the_result() -> None:
    same = gpuemu.op("same", "x[M,N] -> out[M,N]", lambda x: x)
    assert set(kinds(try_it(lambda x: x, same))) == {("aliasing", "input_returned")}
    assert try_it(lambda x: x, same, allow=("aliasing",)).passed
    turned = gpuemu.op("turned", "x[M,N] -> out[N,M]", lambda x: x.T)
    assert try_it(lambda x: x.T, turned, allow=("aliasing",)).passed
    # Nothing else is allowed with it.
    assert first(try_it(cheats.returns_input, allow=("aliasing",)))[:2] == ("value", "input_returned")


def test_an_op_in_place_may_overwrite_and_return_its_input() -> None:
    increment = gpuemu.op("increment", "x[N] -> x[N]", own.increment)
    for function in (own.increment_in_place, own.increment_without_result):
        report = try_it(function, increment)
        assert report.passed, str(report)
    elsewhere = first(try_it(own.increment_elsewhere, increment))
    assert elsewhere[0] == "runner" and "write its result into the input" in elsewhere[2], elsewhere
    assert first(try_it(lambda x: x, increment))[0] == "value"
    # Another input is not for it to overwrite or to return.
    added = gpuemu.op("added", "x[N] y[N] -> x[N]", own.added)
    assert "write its result into the input" in first(try_it(own.added_to_the_other, added))[2]


# Known faults of the engine: each of these tests fails until it is mended.


def test_what_the_memory_of_calls_shows_is_not_blamed_on_strides() -> None:
    assert not [bug for _, bug in kinds(try_it(reused(), layouts=["transposed"])) if bug == "stride"]


def test_zeros_are_not_called_a_cached_result() -> None:
    report = try_it(cheats.zeros, layouts=["contiguous"])
    assert set(kinds(report)) == {("value", "constant")}


def test_a_case_that_is_repeated_is_one_case() -> None:
    assert try_it(right_for(700)).cases == 100


HALVE = "x[...,N] -> x[...,N]"


def test_what_is_written_over_an_input_is_found_there() -> None:
    halve = gpuemu.op("halve_", HALVE, reference=own.halve)
    for kernel in (own.halve_in_place, own.halve_and_return):
        assert try_it(kernel, halve, cases=30).passed, kernel.__name__
    for kernel in (own.halve, own.halve_first_column):
        assert not try_it(kernel, halve, cases=30).passed, kernel.__name__


def test_outputs_beside_one_that_is_written_in_place() -> None:
    both = gpuemu.op("take", "x[N] y[N] -> out[N] x[N]", reference=own.take)
    for kernel in (own.take_without_x, own.take_both):
        assert try_it(kernel, both, cases=20).passed, kernel.__name__
    assert not try_it(own.take_without_writing, both, cases=20).passed


# What has to run.


def test_a_function_that_does_without_its_kernel() -> None:
    kernel = relu_kernel
    assert try_it(cheats.launched, launches=kernel).passed
    assert try_it(cheats.launched, launches="cheating_kernels:relu_kernel").passed
    report = try_it(relu, launches=relu_kernel)
    assert set(kinds(report)) == {("not_launched", "fallback")}
    assert report.reproduce.endswith(", launches=relu_kernel)")
    # What was put in its place meanwhile is gone.
    assert cheats.relu_kernel is relu_kernel is kernel and type(kernel).__name__ == "function"


def test_a_kernel_of_a_closure_is_watched_too() -> None:
    def made() -> tuple[Kernel, Kernel]:
        def kernel(out: Array, x: Array) -> None:
            np.maximum(x, 0, out=out)

        def function(input: Array) -> Array:
            out = np.empty_like(input)
            kernel(out, input)
            return out

        return kernel, function

    kernel, function = made()
    assert try_it(function, launches=kernel).passed
    with pytest.raises(ValueError, match="which no loaded module and not the function itself names"):
        try_it(function, launches=lambda out, x: None)
    with pytest.raises(ValueError, match="write it as 'pkg.mod:name'"):
        try_it(function, launches="kernel")
    with pytest.raises(TypeError, match="launches is a int"):
        try_it(function, launches=3)
