from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from framework_packages import require
from tensor_layouts import LAYOUTS, numbers, same_bits, sample

from gpuemu._arrays.dtypes import DTYPES
from gpuemu.frameworks import NotAnArrayError, TensorData, adapter

require("ml_dtypes")
ADAPTER = adapter("numpy")


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_every_dtype_and_layout_round_trips(dtype: str, layout: str) -> None:
    given = sample(dtype, layout)
    array = ADAPTER.from_tensor_data(given.data)
    assert same_bits(array, given.expected)
    assert tuple(stride // array.itemsize for stride in array.strides) == given.data.strides
    assert ADAPTER.keeps_strides(given.data) and ADAPTER.aliases(given.data)

    back = ADAPTER.to_tensor_data(array)
    assert (back.dtype, back.shape) == (dtype, given.data.shape)
    assert same_bits(back.numpy(), given.expected)
    if array.size:
        assert back.strides == given.data.strides
        assert back.numpy().ctypes.data == array.ctypes.data
        assert np.shares_memory(back.memory, given.data.memory)
    assert same_bits(given.data.contiguous().numpy(), given.expected)


def test_the_memory_of_an_array_is_exactly_what_it_spans() -> None:
    whole = np.arange(24, dtype=np.float32).reshape(4, 6)
    back = ADAPTER.to_tensor_data(whole[3:0:-2, 4:1:-1])
    assert (back.strides, back.offset, back.memory.size) == ((-12, -1), 14, 4 * 15)
    assert back.memory.ctypes.data == whole.ctypes.data + 4 * 8
    back.memory[...] = 0
    assert whole[3, 4] == whole[1, 2] == 0 and whole[1, 1] == 7 and whole[3, 5] == 23


def test_the_memory_of_a_broadcast_row_is_one_row() -> None:
    row = np.arange(4, dtype=np.int16)
    back = ADAPTER.to_tensor_data(np.broadcast_to(row, (1000, 4)))
    assert (back.strides, back.memory.size) == ((0, 1), 8)
    assert not back.memory.flags.writeable


def test_strides_that_are_no_whole_elements_are_copied() -> None:
    records = np.zeros(5, np.dtype([("flag", np.uint8), ("value", np.float32)]))
    records["value"] = range(5)
    back = ADAPTER.to_tensor_data(records["value"])
    assert back.strides == (1,)
    assert back.numpy().tolist() == [0, 1, 2, 3, 4]
    # One element has no neighbour, so its stride is not looked at.
    assert np.shares_memory(ADAPTER.to_tensor_data(records["value"][:1]).memory, records)


def test_the_other_byte_order_is_read_by_value() -> None:
    back = ADAPTER.to_tensor_data(np.array([1.5, -2.0], ">f4"))
    assert back.dtype == "float32"
    assert back.numpy().tolist() == [1.5, -2.0]
    assert back.memory.tobytes() == np.array([1.5, -2.0], "<f4").tobytes()


def test_writes_in_place_reach_the_memory_of_the_tensor() -> None:
    given = sample("float32", "rows backwards, with a gap")
    array = ADAPTER.from_tensor_data(given.data)
    array[2, 3] = 1234.5
    place = given.data.offset - 2 * 6 + 3
    assert given.data.memory[4 * place : 4 * place + 4].view(np.float32) == 1234.5
    out = ADAPTER.out_array(given.data)
    out[...] = 7
    assert np.all(array == 7)


def test_an_output_needs_memory_that_can_be_written() -> None:
    data = numbers([1.0, 2.0])
    data.memory.flags.writeable = False
    assert not ADAPTER.from_tensor_data(data).flags.writeable
    with pytest.raises(TypeError, match="memory that can be written"):
        ADAPTER.out_array(data)


def test_a_tensor_larger_than_its_memory_is_refused() -> None:
    with pytest.raises(ValueError, match="size of buffer"):
        TensorData(np.zeros(15, np.uint8), "float32", (4,), (1,)).numpy()


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "bool", "int64"])
def test_a_full_reduction_is_an_array_of_no_dimensions(dtype: str) -> None:
    given = sample(dtype, "contiguous").expected.max()
    assert type(given) is not np.ndarray
    array = ADAPTER.to_numpy(given)
    assert (type(array), array.shape, array.dtype.name) == (np.ndarray, (), dtype)


class Lazy(np.ndarray[Any, Any]):
    pass


class LazyNumber(np.float64):
    pass


REFUSED = [
    pytest.param([1.0, 2.0], "of type list,", id="list"),
    pytest.param((np.zeros(2),), "of type tuple,", id="tuple"),
    pytest.param(1.0, "of type float,", id="float"),
    pytest.param(None, "of type NoneType,", id="none"),
    pytest.param(np.ma.masked_array([1.0]), "MaskedArray, a subclass", id="masked"),
    pytest.param(np.zeros(2).view(Lazy), r"test_adapters_numpy\.Lazy, a subclass", id="subclass"),
    pytest.param(LazyNumber(1.0), "LazyNumber", id="subclass of a scalar"),
    pytest.param(np.array(["a"]), "the dtype <U1", id="text"),
    pytest.param(np.array([None]), "the dtype object", id="objects"),
    pytest.param(np.array(["2020"], "datetime64[D]"), "the dtype datetime64", id="dates"),
    pytest.param(np.zeros(2, [("a", np.int8)]), "the dtype", id="records"),
]


@pytest.mark.parametrize(("value", "text"), REFUSED)
def test_what_is_no_array_is_refused_by_name(value: Any, text: str) -> None:
    with pytest.raises(NotAnArrayError, match=text) as caught:
        ADAPTER.to_numpy(value, "weights")
    assert str(caught.value).startswith("output 'weights' ")
    assert "return " in str(caught.value) and "numpy." in str(caught.value)


def test_a_matrix_is_refused() -> None:
    with pytest.warns(PendingDeprecationWarning):
        matrix = np.matrix([[1.0]])
    with pytest.raises(NotAnArrayError, match=r"numpy\.matrix, a subclass of numpy\.ndarray"):
        ADAPTER.to_numpy(matrix)


def test_a_mapped_file_is_refused(tmp_path: Any) -> None:
    mapped = np.memmap(tmp_path / "values", np.float32, "w+", shape=(4,))
    with pytest.raises(NotAnArrayError, match="memmap, a subclass"):
        ADAPTER.to_numpy(mapped)


def test_a_dtype_that_gpuemu_lacks_is_read_but_no_tensor() -> None:
    value = np.zeros(2, np.complex64)
    assert ADAPTER.to_numpy(value) is value
    with pytest.raises(TypeError, match="the dtype complex64, which gpuemu lacks"):
        ADAPTER.to_tensor_data(value)


def test_a_snapshot_keeps_values_and_strides() -> None:
    array = np.arange(12, dtype=np.float32).reshape(3, 4)[::-1, ::2]
    kept = ADAPTER.snapshot(array)
    array[...] = 0
    assert kept.tolist() == [[8, 10], [4, 6], [0, 2]]
    assert kept.strides == array.strides


def test_there_are_no_gradients_and_no_devices() -> None:
    with pytest.raises(TypeError, match="no gradients"):
        ADAPTER.gradients(lambda x: x, {"x": np.zeros(1)}, ["x"], np.zeros(1))
    with pytest.raises(ValueError, match="on the CPU, not on device 'cuda'"):
        adapter("numpy", "cuda")
    with ADAPTER.session():
        ADAPTER.prepare(["float64"])
