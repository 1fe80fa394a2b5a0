"""PyTorch tensors: views over a tensor's whole memory, with its strides."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from gpuemu._arrays.dtypes import numpy_dtype
from gpuemu.frameworks.base import BaseAdapter, TensorData, type_name
from gpuemu.frameworks.differentiation import as_tuple, check_wanted, refuse_unconnected, upstream_of

_CARRIERS = {"bfloat16": "uint16", "float8_e4m3fn": "uint8", "float8_e5m2": "uint8"}
"""Dtypes that PyTorch has and cannot hand to NumPy, and what carries their bits."""


class PyTorchAdapter(BaseAdapter):
    """Hands over tensors that lie in gpuemu's memory, or copies of that whole memory on another device."""

    name = "pytorch"
    title = "PyTorch"
    accepted = "a torch.Tensor"
    sees_strides = True
    shares_memory = True

    def __init__(self, device: Any = None) -> None:
        """Choose a device, in any form that `torch.device` takes."""
        super().__init__(device)
        self._device = torch.device("cpu" if device is None else device)
        if self._device.type != "cpu":
            try:
                torch.empty(0, device=self._device)
            except (RuntimeError, AssertionError, NotImplementedError) as error:
                raise ValueError(f"PyTorch cannot use device {str(device)!r} here: {error}") from error

    def owns(self, value: Any) -> bool:
        """Whether a value is a tensor or a parameter, and no subclass of either."""
        return type(value) is torch.Tensor or type(value) is torch.nn.Parameter

    def aliases(self, data: TensorData) -> bool:
        """Whether the tensor can lie in gpuemu's memory: PyTorch cannot run backwards through it."""
        return self._device.type == "cpu" and bool(data.memory.flags.writeable) and not data.runs_backwards()

    def keeps_strides(self, data: TensorData) -> bool:
        """Whether no stride is negative: PyTorch has none of those."""
        return not data.runs_backwards()

    def from_tensor_data(self, data: TensorData) -> Any:
        """Return a tensor over the whole memory; a contiguous copy where strides are negative."""
        dtype = getattr(torch, data.dtype, None)
        if dtype is None:
            raise TypeError(f"PyTorch {torch.__version__} has no dtype {data.dtype}")
        if data.runs_backwards():
            data = data.contiguous()
        # What is left of negative strides belongs to dimensions that nobody steps along.
        strides = tuple(abs(stride) for stride in data.strides)
        # A tensor that is made in inference mode could never be differentiated.
        with torch.inference_mode(False):
            return self._view(data, dtype, strides)

    def _view(self, data: TensorData, dtype: Any, strides: tuple[int, ...]) -> Any:
        """Return a tensor over the whole memory, on the device."""
        if 0 in data.shape:
            return torch.empty_strided(data.shape, strides, dtype=dtype, device=self._device)
        # PyTorch would write into memory that is read-only, so it gets a copy of that.
        memory = data.memory if data.memory.flags.writeable else data.memory.copy()
        whole = torch.from_numpy(memory[: memory.size - memory.size % dtype.itemsize]).to(self._device)
        return whole.view(dtype).as_strided(data.shape, strides, data.offset)

    def to_numpy(self, value: Any, name: str = "output") -> npt.NDArray[Any]:
        """Return a view of a tensor in the memory of the CPU, a copy of one elsewhere."""
        self._check(value, name)
        with torch.no_grad():
            tensor = value.detach().cpu().resolve_conj().resolve_neg()
        dtype = str(tensor.dtype).removeprefix("torch.")
        carrier = _CARRIERS.get(dtype)
        if carrier is not None:
            return np.asarray(tensor.view(getattr(torch, carrier)).numpy().view(numpy_dtype(dtype)))
        try:
            return self.numbers(tensor.numpy(), name)
        except TypeError:
            self.refuse(value, name, f"has the dtype {tensor.dtype}, which cannot be read")

    def _check(self, value: Any, name: str) -> None:
        """Refuse what is no tensor, and tensors without elements that could be read."""
        if not self.owns(value):
            reason = f"is of type {type_name(value)}, a subclass of torch.Tensor"
            self.refuse(value, name, reason if isinstance(value, torch.Tensor) else None)
        if torch._is_functional_tensor(value) or torch._C._functorch.is_functorch_wrapped_tensor(value):
            self.refuse(value, name, "is a tensor inside a transformation such as torch.func.vmap")
        if value.is_nested:
            self.refuse(value, name, "is a nested tensor", "a dense one")
        if value.is_quantized:
            self.refuse(value, name, "is a quantized tensor", "value.dequantize() or value.int_repr()")
        if value.layout is not torch.strided:
            self.refuse(value, name, f"is a tensor of layout {value.layout}", "value.to_dense()")
        if value.device.type in ("meta", "lazy"):
            self.refuse(value, name, f"is on the {value.device.type} device and has no elements")

    def gradients(
        self, function: Callable[..., Any], inputs: Mapping[str, Any], wanted: Sequence[str], upstream: Any
    ) -> list[Any]:
        """Differentiate with `torch.autograd.grad`; the leaves have the memory and strides of the inputs."""
        check_wanted(inputs, wanted)
        with torch.inference_mode(False), torch.enable_grad():
            arguments = {
                # A tensor of inference mode keeps no graph, only a copy of it can.
                name: value.clone() if value.is_inference() else value.detach()
                for name, value in inputs.items()
            }
            leaves = [arguments[name].requires_grad_() for name in wanted]
            outputs = as_tuple(function(**arguments))
            for index, output in enumerate(outputs):
                self._check(output, str(index))
            chosen = upstream_of(outputs, upstream)
            refuse_unconnected((i for i in chosen if not _connected(outputs[i], leaves)), wanted)
            gradients = torch.autograd.grad(
                [outputs[index] for index in chosen], leaves, list(chosen.values()), allow_unused=True
            )
        return [
            torch.zeros_like(leaf, requires_grad=False) if gradient is None else gradient.detach()
            for gradient, leaf in zip(gradients, leaves, strict=True)
        ]


def _connected(output: Any, leaves: Iterable[Any]) -> bool:
    """Whether the graph of an output reaches one of some leaves, and not only weights of the function."""
    if not output.requires_grad:
        return False
    edge = torch.autograd.graph.get_gradient_edge
    ends = {edge(leaf).node for leaf in leaves}
    left, seen = [edge(output).node], set()
    while left:
        node = left.pop()
        if node in ends:
            return True
        if node is not None and node not in seen:
            seen.add(node)
            left.extend(following for following, _ in node.next_functions)
    return False
