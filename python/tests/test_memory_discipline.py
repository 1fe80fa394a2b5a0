"""Functions that cheat, or handle memory badly: each is reported for what it does, and right ones pass."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy_kernels import Array, relu

import gpuemu

Kernel = Callable[..., Any]


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
    def overwrites(input: Array) -> Array:
        result = relu(input)
        input[...] = 0
        return result

    report = try_it(overwrites)
    assert set(kinds(report)) == {("input_modified", "input_overwritten")}
    assert (
        first(report)[2]
        == "the kernel wrote over its input 'input' (39 elements, the first at storage element 0)"
    )


def test_a_write_behind_an_input() -> None:
    def overwrites(input: Array) -> Array:
        if input.flags.c_contiguous and input.size:
            np.lib.stride_tricks.as_strided(input.reshape(-1), (input.size + 1,))[-1] = 0
        return relu(input)

    assert ("out_of_bounds", "out_of_bounds") in kinds(try_it(overwrites))


@pytest.mark.parametrize(
    "function",
    [
        lambda input: input,
        lambda input: input[...],
        lambda input: input.T.T,
        lambda input: input.view(np.ndarray),
    ],
    ids=["itself", "a view", "transposed twice", "another view"],
)
def test_an_input_that_is_returned(function: Kernel) -> None:
    report = try_it(function)
    assert set(kinds(report)) == {("aliasing", "input_returned")}
    assert first(report)[2].startswith("'out' lies in the memory of the input 'input': ")


def test_a_copy_of_an_input() -> None:
    report = try_it(lambda input: input.copy())
    assert {bug for _, bug in kinds(report)} == {"input_returned"}
    assert first(report)[:2] == ("value", "input_returned")
    assert first(report)[2].endswith("; it is the input 'input', bit for bit")


# Outputs that are no results.


def test_constants_and_zeros() -> None:
    for function in (
        lambda input: np.full(input.shape, 3, input.dtype),
        lambda input: np.zeros(input.shape, input.dtype),
    ):
        report = try_it(function)
        assert first(report)[:2] == ("value", "constant")
        assert first(report)[2].endswith("; it is the same, bit for bit, for other inputs of that shape")
        assert kinds(report)["value", "constant"] >= 40


def test_memory_that_was_never_written() -> None:
    report = try_it(lambda input: np.empty(input.shape, input.dtype))
    # Now and then the allocator hands out other memory than what was poisoned; that is wrong as well.
    assert kinds(report)["not_written", "never_written"] > 30


# Results that are kept.


def cached_by(key: Callable[[Array], Any]) -> Kernel:
    """Return a relu that computes once for each key."""
    known: dict[Any, Array] = {}

    def cached(input: Array) -> Array:
        chosen = key(input)
        if chosen not in known:
            known[chosen] = relu(input)
        return np.array(known[chosen])

    return cached


def test_a_result_cached_by_the_address_of_the_data() -> None:
    report = try_it(cached_by(lambda input: (input.ctypes.data, input.shape, input.strides)))
    assert first(report)[:2] == ("stale_result", "cached_by_address")
    assert "although the inputs at the same addresses have changed" in first(report)[2]


def test_a_result_cached_by_the_identity_of_the_array() -> None:
    report = try_it(cached_by(lambda input: (id(input), input.shape)))
    assert first(report)[:2] == ("stale_result", "cached_by_address")
    assert kinds(report)["stale_result", "cached_by_address"] > 20


def test_a_result_cached_by_shape() -> None:
    report = try_it(cached_by(lambda input: input.shape))
    # Whatever the data and wherever it lies.
    assert kinds(report)["value", "constant"] > 20


def reused() -> Kernel:
    """Return a relu that has one output for each shape."""
    known: dict[Any, Array] = {}

    def kernel(input: Array) -> Array:
        result = known.setdefault(input.shape, np.empty(input.shape, input.dtype))
        np.maximum(input, 0, out=result)
        return result

    return kernel


def test_an_output_that_is_used_again() -> None:
    report = try_it(reused(), layouts=["contiguous"])
    assert set(kinds(report)) == {("output_overwritten", "reused_output")}
    assert first(report)[2].startswith("'out' of an earlier call changed when the function was called again")
    assert try_it(reused(), allow=("output_overwritten",))


# Right at times.


def right_for(calls: int) -> Kernel:
    """Return a relu that is right in its first calls."""
    made = [0]

    def kernel(input: Array) -> Array:
        made[0] += 1
        return relu(input) + input.dtype.type(made[0] > calls)

    return kernel


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
    known: set[Any] = set()

    def kernel(input: Array) -> Array:
        new = input.shape not in known
        known.add(input.shape)
        return relu(input) if new else relu(input) * input.dtype.type(2)

    report = try_it(kernel)
    assert first(report)[0] == "nondeterministic"
    assert kinds(report)["nondeterministic", "race"] > 20


def sum_in_any_order() -> Kernel:
    """Return a sum whose order is drawn anew in each call."""
    random = np.random.default_rng(1)

    def kernel(input: Array) -> Array:
        order = random.permutation(input.shape[-1])
        whole = np.add.accumulate(input[..., order], axis=-1, dtype=input.dtype)
        return np.array(whole[..., -1]) if input.shape[-1] else np.zeros(input.shape[:-1], input.dtype)

    return kernel


def test_results_that_differ_from_run_to_run() -> None:
    report = try_it(sum_in_any_order(), "sum")
    assert first(report)[:2] == ("nondeterministic", "race")
    assert first(report)[2].endswith("if sums by atomics are meant, declare `atomics`")
    assert try_it(sum_in_any_order(), "sum", precision=gpuemu.Precision(atomics=True))


# Outputs that are handed over.


def writes_into(write: Callable[[Array, Array], Any]) -> Kernel:
    """Return a relu that takes its output."""

    def kernel(input: Array, out: Array) -> Any:
        return write(input, out)

    return kernel


def without_tail(input: Array, out: Array) -> None:
    whole = out.size - out.size % 4
    out.reshape(-1)[:whole] = relu(input).reshape(-1)[:whole]


def past_the_end(input: Array, out: Array) -> None:
    out[...] = relu(input)
    if out.size:
        np.lib.stride_tricks.as_strided(out.reshape(-1), (out.size + 1,))[-1] = 1


def test_a_tail_that_is_not_written() -> None:
    report = try_it(writes_into(without_tail))
    assert set(kinds(report)) == {("not_written", "never_written")}
    assert first(report)[2] == "3 of 39 elements of 'out' were never written, the first at flat index 36"


def test_a_write_past_the_end_that_leaves_every_value_right() -> None:
    report = try_it(writes_into(past_the_end))
    assert set(kinds(report)) == {("out_of_bounds", "out_of_bounds")}
    assert first(report)[2] == "the kernel wrote 4 bytes outside of 'out', the nearest 0 bytes after the end"


def test_an_output_that_is_ignored() -> None:
    report = try_it(writes_into(lambda input, out: relu(input)))
    assert set(kinds(report)) <= {("runner", "crash"), ("not_written", "never_written")}
    assert "took `out=` and returned another array" in first(report)[2]


def test_functions_that_fill_their_output_pass_and_everything_is_checked() -> None:
    def named_otherwise(input: Array, result: Array) -> None:
        result[...] = relu(input)

    for function, out in (
        (writes_into(lambda input, out: np.maximum(input, 0, out=out)), None),
        (writes_into(lambda input, out: out.__setitem__(..., relu(input))), True),
        (named_otherwise, "result"),
    ):
        report = try_it(function, out=out)
        assert report.passed and report.report.not_checked == []
    assert try_it(lambda input, out=None: relu(input), out=False).passed


# Things that are no arrays, or not the right ones.


class Lazy:
    """Something that computes when it is looked at."""

    def __init__(self, array: Array) -> None:
        self.array = array

    def __array__(self, *arguments: Any, **keywords: Any) -> Array:
        return relu(self.array)


class Special(np.ndarray[Any, Any]):
    """A subclass of NumPy's arrays."""


def raises(input: Array) -> Array:
    raise RuntimeError("out of registers")


NO_RESULTS: dict[str, tuple[Kernel, str]] = {
    "lazy": (
        Lazy,
        "output 'out' is of type test_memory_discipline.Lazy, not a result that can be judged; return a "
        "numpy.ndarray",
    ),
    "subclass": (
        lambda input: np.asarray(relu(input)).view(Special),
        "output 'out' is of type test_memory_discipline.Special, a subclass of numpy.ndarray, not a "
        "result that can be judged; return numpy.array(…) of it",
    ),
    "list": (
        lambda input: relu(input).tolist() if input.ndim else [0.0],
        "output 'out' is of type list, not a result that can be judged; return a numpy.ndarray",
    ),
    "nothing": (
        lambda input: None,
        "output 'out' is of type NoneType, not a result that can be judged; return a numpy.ndarray",
    ),
    "two": (lambda input: (relu(input), relu(input)), "2 outputs came back (0, 1), the op has 1 (out)"),
    "none of one": (lambda input: (), "0 outputs came back (), the op has 1 (out)"),
    "two by name": (
        lambda input: {"out": relu(input), "other": relu(input)},
        "2 outputs came back (out, other), the op has 1 (out)",
    ),
    "a list in a tuple": (
        lambda input: ([1.0],),
        "output 'out' is of type list, not a result that can be judged; return a numpy.ndarray",
    ),
}


@pytest.mark.parametrize("kind", NO_RESULTS)
def test_what_is_no_result_is_refused_by_its_type(kind: str) -> None:
    function, words = NO_RESULTS[kind]
    report = try_it(function, cases=10)
    assert first(report) == ("runner", "crash", words)
    assert report.report.failed == 10


def test_a_result_of_another_form() -> None:
    report = try_it(lambda input: relu(input)[None], cases=10)
    assert first(report) == ("shape", "crash", "output 'out' has shape [1, 3, 13], expected [3, 13]")
    report = try_it(lambda input: relu(input).astype(np.float64), cases=10)
    assert first(report) == ("dtype", "crash", "output 'out' is float64, expected float32")
    report = try_it(lambda input: relu(input).astype(np.complex64), cases=10)
    assert first(report)[0] == "runner" and "unknown dtype 'complex64'" in first(report)[2]


def test_a_function_that_raises() -> None:
    report = try_it(raises, cases=10)
    check, bug_class, words = first(report)
    assert (check, bug_class) == ("runner", "crash")
    lines = words.splitlines()
    assert lines[0] == "the callable raised RuntimeError: out of registers"
    assert len(lines) == 2 and lines[1].startswith("  at ")
    assert lines[1].endswith('in raises: raise RuntimeError("out of registers")')


def test_several_outputs_under_wrong_names() -> None:
    halves = gpuemu.op("halves", "x[N] -> low[N] high[N]", lambda x: (x - 1, x + 1))
    assert try_it(lambda x: {"high": x + 1, "low": x - 1}, halves)
    assert try_it(lambda x: (x - 1, x + 1), halves)
    swapped = try_it(lambda x: (x + 1, x - 1), halves)
    assert first(swapped)[0] == "value" and swapped.failures[0].failures[0].tensor == "low"
    wrong = try_it(lambda x: {"high": x + 1, "lower": x - 1}, halves)
    assert first(wrong) == ("runner", "crash", "output 'low' is missing; what came back: high, lower")


# What is fine.


def on_its_own_copy(input: Array) -> Array:
    own = input.copy()
    own[own < 0] = 0
    return own


FINE: dict[str, Kernel] = {
    "plain": relu,
    "in place on a copy": on_its_own_copy,
    "column-major": lambda input: np.array(relu(input), order="F"),
    "with gaps": lambda input: np.repeat(np.asarray(relu(input))[..., None], 2, axis=-1)[..., 0],
    "backwards": lambda input: np.asarray(relu(input))[::-1].copy()[::-1] if input.ndim else relu(input),
    "one in a tuple": lambda input: (relu(input),),
    "one by any name": lambda input: {"result": relu(input)},
    "other byte order": lambda input: np.asarray(relu(input)).astype(input.dtype.newbyteorder(">")),
    "a part of larger memory": lambda input: (
        np.concatenate([[0], relu(input).reshape(-1)])[1:].astype(input.dtype).reshape(input.shape)
    ),
}


@pytest.mark.parametrize("kind", FINE)
def test_right_functions_pass_whatever_memory_they_return(kind: str) -> None:
    report = try_it(FINE[kind], dtypes=["float32", "float16"])
    assert report.passed, str(report)


def test_returning_an_input_is_allowed_where_it_is_the_result() -> None:
    same = gpuemu.op("same", "x[M,N] -> out[M,N]", lambda x: x)
    assert set(kinds(try_it(lambda x: x, same))) == {("aliasing", "input_returned")}
    assert try_it(lambda x: x, same, allow=("aliasing",)).passed
    turned = gpuemu.op("turned", "x[M,N] -> out[N,M]", lambda x: x.T)
    assert try_it(lambda x: x.T, turned, allow=("aliasing",)).passed
    # Nothing else is allowed with it.
    assert first(try_it(lambda input: input, allow=("aliasing",)))[:2] == ("value", "input_returned")


def test_an_op_in_place_may_overwrite_and_return_its_input() -> None:
    def in_place(x: Array) -> Array:
        x += x.dtype.type(1)
        return x

    def without_result(x: Array) -> None:
        x += x.dtype.type(1)

    increment = gpuemu.op("increment", "x[N] -> x[N]", lambda x: x + 1)
    for function in (in_place, without_result):
        report = try_it(function, increment)
        assert report.passed, str(report)
    elsewhere = first(try_it(lambda x: x + x.dtype.type(1), increment))
    assert elsewhere[0] == "runner" and "write its result into the input" in elsewhere[2], elsewhere
    assert first(try_it(lambda x: x, increment))[0] == "value"
    # Another input is not for it to overwrite or to return.
    added = gpuemu.op("added", "x[N] y[N] -> x[N]", lambda x, y: x + y)

    def returns_the_other(x: Array, y: Array) -> Array:
        y += x
        return y

    assert "write its result into the input" in first(try_it(returns_the_other, added))[2]


# Known faults of the engine: each of these tests fails until it is mended.


def test_what_the_memory_of_calls_shows_is_not_blamed_on_strides() -> None:
    assert not [bug for _, bug in kinds(try_it(reused(), layouts=["transposed"])) if bug == "stride"]


def test_zeros_are_not_called_a_cached_result() -> None:
    report = try_it(lambda input: np.zeros(input.shape, input.dtype), layouts=["contiguous"])
    assert set(kinds(report)) == {("value", "constant")}


def test_a_case_that_is_repeated_is_one_case() -> None:
    assert try_it(right_for(700)).cases == 100


HALVE = "x[...,N] -> x[...,N]"


def test_what_is_written_over_an_input_is_found_there() -> None:
    halve = gpuemu.op("halve_", HALVE, reference=lambda x: x / 2)

    def right(x: Array) -> None:
        x /= 2

    def returned(x: Array) -> Array:
        x /= 2
        return x

    def elsewhere(x: Array) -> Array:
        return x / 2

    def half_done(x: Array) -> None:
        x[..., :1] /= 2

    for kernel in (right, returned):
        assert try_it(kernel, halve, cases=30).passed, kernel.__name__
    for kernel in (elsewhere, half_done):
        assert not try_it(kernel, halve, cases=30).passed, kernel.__name__


def test_outputs_beside_one_that_is_written_in_place() -> None:
    both = gpuemu.op("take", "x[N] y[N] -> out[N] x[N]", reference=lambda x, y: {"out": x + y, "x": y})

    def only_the_other(x: Array, y: Array) -> Array:
        total: Array = x + y
        x[:] = y
        return total

    def all_of_them(x: Array, y: Array) -> tuple[Array, Array]:
        total = x + y
        x[:] = y
        return total, x

    def forgets(x: Array, y: Array) -> tuple[Array, Array]:
        return x + y, y.copy()

    for kernel in (only_the_other, all_of_them):
        assert try_it(kernel, both, cases=20).passed, kernel.__name__
    assert not try_it(forgets, both, cases=20).passed


# What has to run.


def doubled_by_kernel(out: Array, x: Array) -> None:
    """Stand for a kernel."""
    np.maximum(x, 0, out=out)


def launched(input: Array) -> Array:
    """Launch it."""
    out = np.empty_like(input)
    doubled_by_kernel(out, input)
    return out


def test_a_function_that_does_without_its_kernel() -> None:
    kernel = doubled_by_kernel
    assert try_it(launched, launches=kernel).passed
    assert try_it(launched, launches=f"{__name__}:doubled_by_kernel").passed
    report = try_it(relu, launches=doubled_by_kernel)
    assert set(kinds(report)) == {("not_launched", "fallback")}
    assert report.reproduce.endswith(", launches=doubled_by_kernel)")
    # What was put in its place meanwhile is gone.
    assert doubled_by_kernel is kernel and type(kernel).__name__ == "function"


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
