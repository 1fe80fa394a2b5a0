from __future__ import annotations

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
    validate_tensorflow,
)

tf = require("tensorflow")
ADAPTER = adapter("tensorflow")


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_every_dtype_and_layout_round_trips(dtype: str, layout: str) -> None:
    given = sample(dtype, layout)
    tensor = ADAPTER.from_tensor_data(given.data)
    assert tensor.dtype.name == dtype
    back = ADAPTER.to_numpy(tensor)
    assert same_bits(back, given.expected)
    assert not ADAPTER.aliases(given.data)
    assert ADAPTER.keeps_strides(given.data) == given.data.numpy().flags.c_contiguous
    assert same_bits(ADAPTER.to_tensor_data(tensor).numpy(), given.expected)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float8_e4m3fn"])
def test_results_are_read_without_a_copy_and_cannot_be_written(dtype: str) -> None:
    tensor = ADAPTER.from_tensor_data(sample(dtype, "contiguous").data)
    first, second = ADAPTER.to_numpy(tensor), ADAPTER.to_numpy(tensor)
    assert first.ctypes.data == second.ctypes.data
    if dtype == "float32":
        assert np.from_dlpack(tensor).ctypes.data == first.ctypes.data
    assert not first.flags.writeable


def test_a_tensor_does_not_change_when_the_memory_is_refilled() -> None:
    data = numbers(np.arange(1 << 16)).contiguous()
    tensor = ADAPTER.from_tensor_data(data)
    kept = tf.identity(tensor)
    data.memory[...] = 0xFF
    assert np.array_equal(tensor.numpy(), np.arange(1 << 16, dtype=np.float32))
    assert np.array_equal(kept.numpy(), tensor.numpy())


def test_a_dtype_that_the_framework_lacks_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def without(name: str) -> Any:
        raise TypeError(name)

    monkeypatch.setattr(tf, "as_dtype", without)
    with pytest.raises(TypeError, match=r"TensorFlow \d.* has no dtype float8_e5m2"):
        ADAPTER.from_tensor_data(sample("float8_e5m2", "contiguous").data)


def test_there_are_no_outputs_to_fill() -> None:
    with pytest.raises(TypeError, match="TensorFlow arrays cannot be written in place"):
        ADAPTER.out_array(numbers([1.0]))


def test_a_variable_is_read_as_it_is_now() -> None:
    variable = tf.Variable([1.0, 2.0])
    array, kept = ADAPTER.to_numpy(variable), ADAPTER.snapshot(variable)
    variable.assign_add([10.0, 10.0])
    later = ADAPTER.to_numpy(variable)
    variable.scatter_nd_update([[0]], [100.0])
    assert (array.tolist(), later.tolist()) == ([1, 2], [11, 12])
    assert ADAPTER.to_numpy(variable).tolist() == [100, 12]
    assert ADAPTER.to_numpy(kept).tolist() == [1, 2]
    assert adapter_for(variable) is adapter_for(tf.constant(1.0)) is adapter("tf")


def test_an_adapter_that_is_first_used_while_a_function_is_traced_knows_tensors() -> None:
    fresh = type(ADAPTER)()
    seen = []
    tf.function(lambda x: (seen.append(fresh.owns(x)), x)[1], autograph=False)(tf.constant(1.0))
    assert seen == [False]
    assert fresh.owns(tf.constant(1.0))


def symbolic() -> Any:
    leaked = []
    tf.function(lambda x: (leaked.append(x), x)[1], autograph=False)(tf.constant(1.0))
    return leaked[0]


REFUSED = {
    "list": (lambda: [tf.constant(1.0)], "of type list,"),
    "tuple": (lambda: (tf.constant(1.0),), "of type tuple,"),
    "float": (lambda: 1.0, "of type float,"),
    "none": (lambda: None, "of type NoneType,"),
    "array": (lambda: np.ones(1), r"of type numpy\.ndarray,"),
    "symbolic": (symbolic, "a symbolic tensor that is not computed"),
    "sparse": (lambda: tf.sparse.eye(2), r"tf\.SparseTensor.*to_dense"),
    "ragged": (lambda: tf.ragged.constant([[1], [2, 3]]), r"tf\.RaggedTensor.*to_tensor"),
    "rows": (lambda: tf.IndexedSlices(tf.ones((1, 2)), tf.constant([0])), "IndexedSlices"),
    "text": (lambda: tf.constant(["a"]), "the dtype object"),
}


@pytest.mark.parametrize("kind", REFUSED)
def test_what_is_no_computed_tensor_is_refused_by_name(kind: str) -> None:
    make, text = REFUSED[kind]
    with pytest.raises(NotAnArrayError, match=text) as caught:
        ADAPTER.to_numpy(make(), "weights")
    assert str(caught.value).startswith("output 'weights' ")
    assert "; return " in str(caught.value)


def test_a_device_can_be_named() -> None:
    for name in ("CPU:0", "/device:CPU:0", "cpu"):
        chosen = adapter("tf", name)
        assert chosen.from_tensor_data(numbers([1.0])).device.endswith("CPU:0")
        with chosen.session():
            assert tf.add(1.0, 1.0).device.endswith("CPU:0")
    with validate_tensorflow(device="cpu"):
        assert current_adapter() is adapter("tf", "cpu")
    with pytest.raises(ValueError, match="cannot use device 'GPU:7' here; its devices: /device:CPU:0"):
        validate_tensorflow(device="GPU:7")


def scaled(x: Any, y: Any) -> Any:
    return x * x * y


@tf.custom_gradient
def custom(x: Any, y: Any) -> Any:
    return x * x * y, lambda upstream: (2 * x * y * upstream, x * x * upstream)


@tf.custom_gradient
def outside(x: Any, y: Any) -> Any:
    """Compute outside of TensorFlow, as a kernel of another library does."""
    result = tf.numpy_function(lambda a, b: a * a * b, [x, y], x.dtype)
    return tf.ensure_shape(result, x.shape), lambda upstream: (2 * x * y * upstream, x * x * upstream)


FUNCTIONS = {
    "plain": scaled,
    "function": tf.function(scaled),
    "compiled": tf.function(scaled, jit_compile=True),
    "custom": custom,
    "custom in a function": tf.function(lambda x, y: custom(x, y), autograph=False),
    "outside": outside,
}


@pytest.mark.parametrize("kind", FUNCTIONS)
def test_gradients_of_all_kinds_of_functions(kind: str) -> None:
    inputs = {
        "x": ADAPTER.from_tensor_data(numbers([[1, 3], [2, 4]])),
        "y": ADAPTER.from_tensor_data(numbers([[5, 6], [7, 8]])),
    }
    upstream = ADAPTER.from_tensor_data(numbers([[1, 10], [100, 1000]]))
    function = FUNCTIONS[kind]
    of_x, of_y = ADAPTER.gradients(lambda x, y: function(x, y), inputs, ["x", "y"], upstream)
    assert ADAPTER.to_numpy(of_x).tolist() == [[10, 360], [2800, 64000]]
    assert ADAPTER.to_numpy(of_y).tolist() == [[1, 90], [400, 16000]]


def test_rows_that_were_gathered_have_a_whole_gradient() -> None:
    inputs = {"table": tf.ones((3, 2)), "rows": tf.constant([2, 2])}
    (gradient,) = ADAPTER.gradients(
        lambda table, rows: tf.gather(table, rows), inputs, ["table"], tf.ones((2, 2))
    )
    assert ADAPTER.to_numpy(gradient).tolist() == [[0, 0], [0, 0], [2, 2]]


def test_one_tensor_may_be_two_inputs() -> None:
    both = tf.constant([3.0])
    of_x, of_y = ADAPTER.gradients(scaled, {"x": both, "y": both}, ["x", "y"], tf.ones(1))
    assert (of_x.numpy().tolist(), of_y.numpy().tolist()) == ([18], [9])


def test_several_outputs_add_up_and_one_may_be_left_out() -> None:
    def several(x: Any, y: Any) -> Any:
        return [x * 2, tf.argmax(x), x * 3]

    upstream = (tf.ones(2), None, tf.fill(2, 10.0))
    of_x, of_y = ADAPTER.gradients(several, {"x": tf.ones(2), "y": tf.ones(3)}, ["x", "y"], upstream)
    assert (of_x.numpy().tolist(), of_y.numpy().tolist()) == ([32, 32], [0, 0, 0])


def test_an_output_that_is_not_connected_is_refused() -> None:
    inputs, one = {"x": tf.ones(2)}, tf.ones(2)
    with pytest.raises(NotConnectedError, match="no gradient flows from output 0 .* inputs x: "):
        ADAPTER.gradients(lambda x: tf.stop_gradient(x) * 2, inputs, ["x"], one)
    with pytest.raises(NotConnectedError, match="from output 1"):
        ADAPTER.gradients(lambda x: (x * 2, tf.stop_gradient(x)), inputs, ["x"], (one, one))
    with pytest.raises(NotAnArrayError, match="output '0' is of type float"):
        ADAPTER.gradients(lambda x: 1.0, inputs, ["x"], one)
