from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from framework_packages import require
from tensor_layouts import LAYOUTS, numbers, same_bits, sample

from gpuemu._arrays.dtypes import DTYPES
from gpuemu.frameworks import (
    NotAnArrayError,
    TensorData,
    adapter,
    adapter_for,
    current_adapter,
    validate_pytorch,
)

torch = require("torch")
require("ml_dtypes")
ADAPTER = adapter("pytorch")

DEVICES = ["meta", "cuda"] if torch.cuda.is_available() else ["meta"]
"""The devices other than the CPU that there are."""


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_every_dtype_and_layout_round_trips(dtype: str, layout: str) -> None:
    given = sample(dtype, layout)
    tensor = ADAPTER.from_tensor_data(given.data)
    assert (type(tensor), str(tensor.dtype)) == (torch.Tensor, f"torch.{dtype}")
    array = ADAPTER.to_numpy(tensor)
    assert same_bits(array, given.expected)

    backwards = "backwards" in layout
    assert ADAPTER.keeps_strides(given.data) is not backwards
    assert ADAPTER.aliases(given.data) is not backwards
    if backwards:
        assert tensor.stride() == (4, 1)
    elif tensor.numel():
        assert tensor.stride() == tuple(abs(stride) for stride in given.data.strides)
        start = given.data.memory.ctypes.data + given.data.offset * tensor.element_size()
        assert tensor.data_ptr() == start == array.ctypes.data
        assert tensor.storage_offset() == given.data.offset
    else:
        assert tensor.stride() == given.data.strides
    assert same_bits(ADAPTER.to_tensor_data(tensor).numpy(), given.expected)


@pytest.mark.parametrize("layout", [name for name in LAYOUTS if "empty" not in name])
def test_writes_in_place_reach_the_memory_of_the_tensor(layout: str) -> None:
    given = sample("float32", layout)
    if "backwards" in layout:
        before = given.data.memory.copy()
        ADAPTER.from_tensor_data(given.data).fill_(7)
        assert np.array_equal(before, given.data.memory)
        with pytest.raises(TypeError, match=r"must lie in gpuemu's memory; PyTorch .* strides \(-"):
            ADAPTER.out_array(given.data)
    else:
        ADAPTER.out_array(given.data).fill_(7)
        assert np.all(given.data.numpy() == 7)


def test_a_kernel_can_write_out_of_bounds_where_gpuemu_sees_it() -> None:
    given = sample("float32", "offset")
    tensor = ADAPTER.from_tensor_data(given.data)
    tensor.as_strided((1,), (1,), given.data.offset - 1).fill_(7)
    assert given.data.memory[4 * 4 : 4 * 5].view(np.float32) == 7


def test_memory_at_an_odd_address_is_read_in_place() -> None:
    memory = np.zeros(17, np.uint8)[1:]
    memory[:] = np.array([1.5, -2.0]).view(np.uint8)
    tensor = ADAPTER.from_tensor_data(TensorData(memory, "float64", (2,), (1,)))
    assert tensor.data_ptr() == memory.ctypes.data
    assert tensor.tolist() == [1.5, -2.0]


@pytest.mark.filterwarnings("error")
def test_memory_that_is_read_only_is_never_written() -> None:
    data = numbers([1.0, 2.0])
    data.memory.flags.writeable = False
    assert not ADAPTER.aliases(data)
    ADAPTER.from_tensor_data(data).fill_(7)
    assert data.numpy().tolist() == [1, 2]
    with pytest.raises(TypeError, match="memory that can be written"):
        ADAPTER.out_array(data)


def test_a_tensor_larger_than_its_memory_is_refused() -> None:
    with pytest.raises(RuntimeError, match="out of bounds"):
        ADAPTER.from_tensor_data(TensorData(np.zeros(15, np.uint8), "float32", (4,), (1,)))


def test_a_dtype_that_the_framework_lacks_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(torch, "float8_e5m2")
    with pytest.raises(TypeError, match=r"PyTorch \d.* has no dtype float8_e5m2"):
        ADAPTER.from_tensor_data(sample("float8_e5m2", "contiguous").data)


def test_results_are_read_without_a_copy() -> None:
    for tensor in (torch.ones(3, 4).T, torch.ones(4, 6)[::2, 1::2], torch.ones(3, requires_grad=True)):
        array = ADAPTER.to_numpy(tensor)
        assert array.ctypes.data == tensor.data_ptr()
        assert tuple(stride // 4 for stride in array.strides) == tensor.stride()


def test_bits_that_are_lazy_are_resolved() -> None:
    complex_tensor = torch.tensor([1 + 2j])
    assert ADAPTER.to_numpy(complex_tensor.conj()).tolist() == [1 - 2j]
    assert ADAPTER.to_numpy(complex_tensor.conj().imag).tolist() == [-2.0]


def test_parameters_are_tensors() -> None:
    parameter = torch.nn.Parameter(torch.ones(2))
    assert ADAPTER.to_numpy(parameter).tolist() == [1, 1]
    assert adapter_for(parameter) is adapter_for(torch.ones(1)) is adapter("torch")


class Lazy(torch.Tensor):
    pass


def fake() -> Any:
    from torch._subclasses.fake_tensor import FakeTensorMode

    with FakeTensorMode():
        return torch.zeros(2)


def quantized() -> Any:
    return torch.quantize_per_tensor(torch.ones(2), 0.1, 0, torch.qint8)


REFUSED = {
    "list": (lambda: [torch.ones(1)], "of type list,"),
    "tuple": (lambda: (torch.ones(1),), "of type tuple,"),
    "float": (lambda: 1.0, "of type float,"),
    "none": (lambda: None, "of type NoneType,"),
    "array": (lambda: np.ones(1), r"of type numpy\.ndarray,"),
    "subclass": (lambda: torch.ones(1).as_subclass(Lazy), "Lazy, a subclass of torch.Tensor"),
    "fake": (fake, "FakeTensor, a subclass"),
    "meta": (lambda: torch.ones(2, device="meta"), "on the meta device and has no elements"),
    "sparse": (lambda: torch.eye(2).to_sparse(), r"layout torch\.sparse_coo.*to_dense"),
    "compressed": (lambda: torch.eye(2).to_sparse_csr(), r"layout torch\.sparse_csr"),
    "quantized": (quantized, "a quantized tensor.*dequantize"),
    "nested": (lambda: torch.nested.nested_tensor([torch.ones(1), torch.ones(2)]), "a nested tensor"),
    "functional": (lambda: torch._to_functional_tensor(torch.ones(1)), "inside a transformation"),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", REFUSED)
def test_what_is_no_computed_tensor_is_refused_by_name(kind: str) -> None:
    make, text = REFUSED[kind]
    with pytest.raises(NotAnArrayError, match=text) as caught:
        ADAPTER.to_numpy(make(), "weights")
    assert str(caught.value).startswith("output 'weights' ")
    assert "; return " in str(caught.value)


def test_a_tensor_inside_a_transformation_is_refused() -> None:
    def look(x: Any) -> Any:
        ADAPTER.to_numpy(x)
        return x

    with pytest.raises(NotAnArrayError, match=r"inside a transformation such as torch\.func\.vmap"):
        torch.func.vmap(look)(torch.ones(2, 3))


def test_a_snapshot_keeps_values_and_strides() -> None:
    tensor = torch.arange(12.0).reshape(3, 4).T[::2]
    kept = ADAPTER.snapshot(tensor)
    tensor.fill_(0)
    assert kept.tolist() == [[0, 4, 8], [2, 6, 10]]
    assert kept.stride() == tensor.stride()


def test_a_device_that_is_missing_is_refused() -> None:
    assert adapter("torch", "cpu").from_tensor_data(numbers([1.0])).device.type == "cpu"
    with validate_pytorch():
        assert current_adapter() is adapter("pytorch")
    if not torch.cuda.is_available():
        with pytest.raises(ValueError, match="PyTorch cannot use device 'cuda' here"):
            validate_pytorch(device="cuda")


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("device", DEVICES)
def test_strides_and_offsets_survive_the_way_to_a_device(device: str, layout: str) -> None:
    other, given = adapter("torch", device), sample("bfloat16", layout)
    tensor = other.from_tensor_data(given.data)
    assert tensor.device.type == device
    if other.keeps_strides(given.data) and tensor.numel():
        assert tensor.stride() == tuple(abs(stride) for stride in given.data.strides)
        assert tensor.storage_offset() == given.data.offset
    if device == "cuda":
        assert same_bits(other.to_numpy(tensor), given.expected)
    assert not other.aliases(given.data)
    with pytest.raises(TypeError, match=f"on device {device}"):
        other.out_array(given.data)
