"""Functions that cheat or handle memory badly, and right ones that handle it in unusual ways.

`cheating_ops` says which op of a project each of them is, so that every door can be given the same functions.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy_kernels import Array, relu

Kernel = Callable[..., Any]


# Inputs.


def overwrites(input: Array) -> Array:
    """Zero the input."""
    result = relu(input)
    input[...] = 0
    return result


def writes_behind(input: Array) -> Array:
    """Write one element past the end of the input."""
    if input.flags.c_contiguous and input.size:
        np.lib.stride_tricks.as_strided(input.reshape(-1), (input.size + 1,))[-1] = 0
    return relu(input)


def returns_input(input: Array) -> Array:
    """Return the input."""
    return input


def returns_view(input: Array) -> Array:
    """Return a view of the input."""
    return input[...]


def returns_transposed_twice(input: Array) -> Array:
    """Return another view of the input."""
    return input.T.T


def returns_other_view(input: Array) -> Array:
    """Return one more view of the input."""
    return input.view(np.ndarray)


def copies_input(input: Array) -> Array:
    """Return the values of the input."""
    return input.copy()


# Outputs that are no results.


def threes(input: Array) -> Array:
    """Return a constant."""
    return np.full(input.shape, 3, input.dtype)


def zeros(input: Array) -> Array:
    """Return zeros."""
    return np.zeros(input.shape, input.dtype)


def never_written(input: Array) -> Array:
    """Return memory as the allocator gives it."""
    return np.empty(input.shape, input.dtype)


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


def address(input: Array) -> Any:
    """Return where the data of an array lies."""
    return input.ctypes.data, input.shape, input.strides


def identity(input: Array) -> Any:
    """Return which object an array is."""
    return id(input), input.shape


def shape(input: Array) -> Any:
    """Return the shape of an array."""
    return input.shape


def reused() -> Kernel:
    """Return a relu that has one output for each shape."""
    known: dict[Any, Array] = {}

    def kernel(input: Array) -> Array:
        result = known.setdefault(input.shape, np.empty(input.shape, input.dtype))
        np.maximum(input, 0, out=result)
        return result

    return kernel


def reused_in_turns() -> Kernel:
    """Return a relu that has two outputs for each shape and takes them in turns."""
    known: dict[Any, Array] = {}
    calls = [0]

    def alternating(input: Array) -> Array:
        calls[0] += 1
        out = known.setdefault((input.shape, calls[0] % 2), np.empty(input.shape, input.dtype))
        result: Array = np.maximum(input, 0, out=out)
        return result

    return alternating


# Right at times.


def right_for(calls: int) -> Kernel:
    """Return a relu that is right in its first calls."""
    made = [0]

    def kernel(input: Array) -> Array:
        made[0] += 1
        result: Array = relu(input) + input.dtype.type(made[0] > calls)
        return result

    return kernel


def right_for_new_shapes() -> Kernel:
    """Return a relu that is right in the first call of each shape."""
    known: set[Any] = set()

    def kernel(input: Array) -> Array:
        new = input.shape not in known
        known.add(input.shape)
        return relu(input) if new else relu(input) * input.dtype.type(2)

    return kernel


def sum_in_any_order() -> Kernel:
    """Return a sum whose order is drawn anew in each call."""
    random = np.random.default_rng(1)

    def kernel(input: Array) -> Array:
        order = random.permutation(input.shape[-1])
        whole = np.add.accumulate(input[..., order], axis=-1, dtype=input.dtype)
        return np.array(whole[..., -1]) if input.shape[-1] else np.zeros(input.shape[:-1], input.dtype)

    return kernel


# Outputs that are handed over.


def without_tail(input: Array, out: Array) -> None:
    """Write whole blocks of four only."""
    whole = out.size - out.size % 4
    out.reshape(-1)[:whole] = relu(input).reshape(-1)[:whole]


def past_the_end(input: Array, out: Array) -> None:
    """Write one element past the end of the output."""
    out[...] = relu(input)
    if out.size:
        np.lib.stride_tricks.as_strided(out.reshape(-1), (out.size + 1,))[-1] = 1


def ignores_out(input: Array, out: Array) -> Array:
    """Return another array than the one to write into."""
    return relu(input)


def returns_other_than_out(input: Array, out: Array) -> Array:
    """Write the result into the output, and return something else."""
    np.maximum(input, 0, out=out)
    return np.full_like(out, 7)


def returns_out(input: Array, out: Array) -> Array:
    """Write the result into the output, and return it."""
    result: Array = np.maximum(input, 0, out=out)
    return result


def fills_out(input: Array, out: Array) -> None:
    """Write the result into the output."""
    out[...] = relu(input)


# Things that are no arrays, or not the right ones.


class Lazy:
    """Something that computes when it is looked at."""

    def __init__(self, array: Array) -> None:
        """Keep the input."""
        self.array = array

    def __array__(self, *arguments: Any, **keywords: Any) -> Array:
        """Compute."""
        return relu(self.array)


class Special(np.ndarray[Any, Any]):
    """A subclass of NumPy's arrays."""


def lazy(input: Array) -> Any:
    """Return a promise."""
    return Lazy(input)


def subclass(input: Array) -> Any:
    """Return an array of another type."""
    return np.asarray(relu(input)).view(Special)


def a_list(input: Array) -> Any:
    """Return lists of numbers."""
    return relu(input).tolist() if input.ndim else [0.0]


def nothing(input: Array) -> None:
    """Return nothing."""


def two(input: Array) -> Any:
    """Return the output twice."""
    return relu(input), relu(input)


def none_of_one(input: Array) -> Any:
    """Return no output."""
    return ()


def two_by_name(input: Array) -> Any:
    """Return the output and another one."""
    return {"out": relu(input), "other": relu(input)}


def a_list_in_a_tuple(input: Array) -> Any:
    """Return a list as the only output."""
    return ([1.0],)


def another_shape(input: Array) -> Array:
    """Return one dim more."""
    return relu(input)[None]


def another_dtype(input: Array) -> Array:
    """Return float64."""
    return relu(input).astype(np.float64)


def unknown_dtype(input: Array) -> Array:
    """Return complex numbers."""
    return relu(input).astype(np.complex64)


def raises(input: Array) -> Array:
    """Compute nothing."""
    raise RuntimeError("out of registers")


def ends_the_program(input: Array) -> Array:
    """End the process, as far as it is let."""
    sys.exit(0)


# What is fine.


def on_its_own_copy(input: Array) -> Array:
    """Work in place on a copy."""
    own = input.copy()
    own[own < 0] = 0
    return own


def column_major(input: Array) -> Array:
    """Return columns that are contiguous."""
    return np.array(relu(input), order="F")


def with_gaps(input: Array) -> Array:
    """Return every second element of larger memory."""
    result: Array = np.repeat(np.asarray(relu(input))[..., None], 2, axis=-1)[..., 0]
    return result


def backwards(input: Array) -> Array:
    """Return rows that lie in memory from last to first."""
    result: Array = np.asarray(relu(input))[::-1].copy()[::-1] if input.ndim else relu(input)
    return result


def one_in_a_tuple(input: Array) -> Any:
    """Return a tuple of the output."""
    return (relu(input),)


def one_by_any_name(input: Array) -> Any:
    """Return the output by a name of its own."""
    return {"result": relu(input)}


def other_byte_order(input: Array) -> Array:
    """Return big-endian numbers."""
    result: Array = np.asarray(relu(input)).astype(input.dtype.newbyteorder(">"))
    return result


def part_of_larger_memory(input: Array) -> Array:
    """Return all but the first element of larger memory."""
    whole: Array = np.concatenate([[0], relu(input).reshape(-1)])[1:].astype(input.dtype)
    return whole.reshape(input.shape)


# What has to run.


def relu_kernel(out: Array, x: Array) -> None:
    """Stand for a kernel."""
    np.maximum(x, 0, out=out)


def launched(input: Array) -> Array:
    """Launch it."""
    out = np.empty_like(input)
    relu_kernel(out, input)
    return out


# What can be found by its name only: one of each that is made.
cached_by_address = cached_by(address)
cached_by_identity = cached_by(identity)
cached_by_shape = cached_by(shape)
reused_output = reused()
reused_outputs = reused_in_turns()
right_for_one = right_for(1)
right_for_two = right_for(2)
right_for_150 = right_for(150)
right_for_new_shapes_only = right_for_new_shapes()
summed_in_any_order = sum_in_any_order()
