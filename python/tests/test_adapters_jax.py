from __future__ import annotations

import threading
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from framework_packages import require
from tensor_layouts import LAYOUTS, numbers, same_bits, sample

from gpuemu._arrays.dtypes import DTYPES
from gpuemu.frameworks import (
    NotAnArrayError,
    NotConnectedError,
    adapter,
    adapter_for,
    current_adapter,
    validate_jax,
)

jax = require("jax")
jnp = require("jax.numpy")
ADAPTER = adapter("jax")


@pytest.fixture(autouse=True)
def session() -> Iterator[None]:
    with ADAPTER.session():
        yield


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_every_dtype_and_layout_round_trips(dtype: str, layout: str) -> None:
    given = sample(dtype, layout)
    ADAPTER.prepare([dtype])
    array = ADAPTER.from_tensor_data(given.data)
    assert isinstance(array, jax.Array) and array.dtype.name == dtype
    back = ADAPTER.to_numpy(array)
    assert same_bits(back, given.expected)
    assert back.size == 0 or back.ctypes.data == array.unsafe_buffer_pointer()
    assert not ADAPTER.aliases(given.data)
    assert ADAPTER.keeps_strides(given.data) == given.data.numpy().flags.c_contiguous
    assert same_bits(ADAPTER.to_tensor_data(array).numpy(), given.expected)


def test_an_array_does_not_change_when_the_memory_is_refilled() -> None:
    data = numbers(np.arange(1 << 16)).contiguous()
    array = ADAPTER.from_tensor_data(data)
    result = jax.jit(lambda x: x + 1)(array)
    data.memory[...] = 0xFF
    assert np.array_equal(np.asarray(array), np.arange(1 << 16, dtype=np.float32))
    assert np.array_equal(np.asarray(result), np.arange(1 << 16, dtype=np.float32) + 1)


def test_there_is_one_copy_and_jax_takes_it_over(monkeypatch: pytest.MonkeyPatch) -> None:
    given = []
    put = jax.device_put
    monkeypatch.setattr(jax, "device_put", lambda value, device: (given.append(value), put(value, device))[1])
    array = ADAPTER.from_tensor_data(numbers(np.arange(1 << 16)))
    assert array.unsafe_buffer_pointer() == given[0].ctypes.data


def test_there_are_no_outputs_to_fill() -> None:
    with pytest.raises(TypeError, match="JAX arrays cannot be written in place"):
        ADAPTER.out_array(numbers([1.0]))


@pytest.mark.parametrize("users", [False, True])
def test_numbers_are_wide_exactly_where_the_inputs_are(users: bool) -> None:
    wide = [
        (["float64"], True),
        (["float32"], False),
        (["float32", "int64"], False),
        (["int64"], True),
        (["float32", "float64"], True),
        (["int32", "bool"], False),
        ([], False),
    ]
    with jax.enable_x64(users):
        with ADAPTER.session():
            for dtypes, expected in wide:
                ADAPTER.prepare(dtypes)
                assert bool(jax.config.jax_enable_x64) is expected, dtypes
                with ADAPTER.session():
                    ADAPTER.prepare(["float32"] if expected else ["float64"])
                assert bool(jax.config.jax_enable_x64) is expected, dtypes
        assert bool(jax.config.jax_enable_x64) is users


def test_a_session_ends_with_the_users_setting_after_an_exception() -> None:
    before = bool(jax.config.jax_enable_x64)
    with pytest.raises(KeyError), ADAPTER.session():
        ADAPTER.prepare(["float32"] if before else ["float64"])
        raise KeyError
    assert bool(jax.config.jax_enable_x64) is before


def test_other_threads_do_not_see_the_setting_of_a_session() -> None:
    before = bool(jax.config.jax_enable_x64)
    ADAPTER.prepare(["float32"] if before else ["float64"])
    seen = []
    thread = threading.Thread(target=lambda: seen.append(bool(jax.config.jax_enable_x64)))
    thread.start()
    thread.join()
    assert seen == [before]


def test_numbers_that_would_wrap_are_refused() -> None:
    ADAPTER.prepare(["float32", "int64"])
    assert ADAPTER.from_tensor_data(numbers([-1, 2**31 - 1], "int64")).dtype == np.int32
    with pytest.raises(TypeError, match="cannot hold these int64 values in int32"):
        ADAPTER.from_tensor_data(numbers([2**31], "int64"))
    with pytest.raises(TypeError, match="cannot hold these uint64 values in uint32"):
        ADAPTER.from_tensor_data(numbers([2**32], "uint64"))
    with pytest.raises(TypeError, match="float64 only with jax_enable_x64"):
        ADAPTER.from_tensor_data(numbers([1.0], "float64"))


REFUSED = {
    "list": (lambda: [jnp.ones(1)], "of type list,"),
    "tuple": (lambda: (jnp.ones(1),), "of type tuple,"),
    "float": (lambda: 1.0, "of type float,"),
    "none": (lambda: None, "of type NoneType,"),
    "array": (lambda: np.ones(1), r"of type numpy\.ndarray,"),
    "key": (lambda: jax.random.key(0), "PRNGKeyArray"),
    "shape": (lambda: jax.ShapeDtypeStruct((1,), np.float32), "ShapeDtypeStruct"),
}


@pytest.mark.parametrize("kind", REFUSED)
def test_what_is_no_computed_array_is_refused_by_name(kind: str) -> None:
    make, text = REFUSED[kind]
    with pytest.raises(NotAnArrayError, match=text) as caught:
        ADAPTER.to_numpy(make(), "weights")
    assert str(caught.value).startswith("output 'weights' ")
    assert str(caught.value).endswith("; return a jax.Array")


def test_a_tracer_is_refused() -> None:
    leaked = []
    jax.jit(lambda x: (leaked.append(x), x)[1])(jnp.ones(2))
    with pytest.raises(NotAnArrayError, match="a tracer that stands for an array"):
        ADAPTER.to_numpy(leaked[0])
    with pytest.raises(TypeError, match="Tracer is no array"):
        adapter_for(leaked[0])


def test_an_adapter_that_is_first_used_while_jax_traces_knows_arrays() -> None:
    fresh = type(ADAPTER)()
    jax.jit(lambda x: x if not fresh.owns(x) else None)(jnp.ones(2)).block_until_ready()
    assert fresh.owns(jnp.ones(2))


def test_an_array_of_other_processes_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    # One process has no such array, so something stands in for it.
    distributed = SimpleNamespace(is_deleted=lambda: False, is_fully_addressable=False)
    monkeypatch.setattr(ADAPTER, "owns", lambda value: True)
    with pytest.raises(NotAnArrayError, match="lies on devices of other processes"):
        ADAPTER.to_numpy(distributed)


def test_a_deleted_array_is_refused_and_a_snapshot_outlives_it() -> None:
    array = jnp.arange(3.0)
    kept = ADAPTER.snapshot(array)
    array.delete()
    with pytest.raises(NotAnArrayError, match="was deleted"):
        ADAPTER.to_numpy(array)
    assert ADAPTER.to_numpy(kept).tolist() == [0, 1, 2]


def test_a_result_is_read_after_it_is_computed_and_cannot_be_written() -> None:
    result = jax.jit(lambda x: x @ x)(jnp.ones((256, 256)))
    array = ADAPTER.to_numpy(result)
    assert np.all(array == 256)
    assert not array.flags.writeable
    assert adapter_for(result) is ADAPTER


def test_a_device_can_be_named() -> None:
    device = jax.devices("cpu")[0]
    for chosen in ("cpu", device):
        array = adapter("jax", chosen).from_tensor_data(numbers([1.0]))
        assert array.devices() == {device}
    with validate_jax(device="cpu"):
        assert current_adapter() is adapter("jax", "cpu")
    with pytest.raises(ValueError, match="JAX cannot use device 'abacus' here"):
        validate_jax(device="abacus")


def scaled(x: Any, y: Any) -> Any:
    return x * x * y


def custom() -> Any:
    function = jax.custom_vjp(scaled)
    function.defvjp(
        lambda x, y: (scaled(x, y), (x, y)),
        lambda kept, up: (2 * kept[0] * kept[1] * up, kept[0] ** 2 * up),
    )
    return function


def outside() -> Any:
    """Compute outside of JAX, as a kernel that is called through a foreign function does."""

    def compute(x: Any, y: Any) -> Any:
        return jax.pure_callback(
            lambda a, b: np.asarray(a) ** 2 * b, jax.ShapeDtypeStruct(x.shape, x.dtype), x, y
        )

    function = jax.custom_vjp(compute)
    function.defvjp(
        lambda x, y: (compute(x, y), (x, y)),
        lambda kept, up: (2 * kept[0] * kept[1] * up, kept[0] ** 2 * up),
    )
    return jax.jit(function)


FUNCTIONS = {"plain": lambda: scaled, "jit": lambda: jax.jit(scaled), "custom": custom, "outside": outside}


@pytest.mark.parametrize("kind", FUNCTIONS)
def test_gradients_of_all_kinds_of_functions(kind: str) -> None:
    inputs = {
        "x": ADAPTER.from_tensor_data(numbers([[1, 3], [2, 4]])),
        "y": ADAPTER.from_tensor_data(numbers([[5, 6], [7, 8]])),
    }
    upstream = ADAPTER.from_tensor_data(numbers([[1, 10], [100, 1000]]))
    function = FUNCTIONS[kind]()
    of_x, of_y = ADAPTER.gradients(lambda x, y: function(x, y), inputs, ["x", "y"], upstream)
    assert ADAPTER.to_numpy(of_x).tolist() == [[10, 360], [2800, 64000]]
    assert ADAPTER.to_numpy(of_y).tolist() == [[1, 90], [400, 16000]]


def test_several_outputs_add_up_and_one_may_be_left_out() -> None:
    def several(x: Any, y: Any) -> Any:
        return [x * 2, x.argmax(), x * 3, x * 5]

    upstream = (jnp.ones(2), None, jnp.full(2, 10.0), None)
    of_x, of_y = ADAPTER.gradients(several, {"x": jnp.ones(2), "y": jnp.ones(3)}, ["x", "y"], upstream)
    assert (of_x.tolist(), of_y.tolist()) == ([32, 32], [0, 0, 0])


@pytest.mark.parametrize("wrap", [lambda function: function, jax.jit], ids=["plain", "jit"])
def test_an_output_that_is_not_connected_is_refused(wrap: Any) -> None:
    inputs, one = {"x": jnp.ones(2)}, jnp.ones(2)
    with pytest.raises(NotConnectedError, match="no gradient flows from output 0 .* inputs x: "):
        ADAPTER.gradients(wrap(lambda x: jax.lax.stop_gradient(x) * 2), inputs, ["x"], one)
    with pytest.raises(NotConnectedError, match="from output 1"):
        ADAPTER.gradients(wrap(lambda x: (x, jax.lax.stop_gradient(x))), inputs, ["x"], (one, one))
    with pytest.raises(NotConnectedError, match="from output 0"):
        ADAPTER.gradients(wrap(lambda x: x.astype(int)), inputs, ["x"], one)
