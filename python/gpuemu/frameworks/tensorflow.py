"""TensorFlow tensors: copies of tensors, without strides."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import tensorflow

from gpuemu.frameworks.base import BaseAdapter, TensorData, type_name
from gpuemu.frameworks.differentiation import as_tuple, check_wanted, refuse_unconnected, upstream_of


class TensorFlowAdapter(BaseAdapter):
    """Hands over copies.

    TensorFlow could take over aligned memory through DLPack. But it counts on a tensor never changing:
    `tf.identity` and reshapes share the memory of their inputs, so memory that gpuemu refills for the next
    call would change results that the user kept.
    """

    name = "tensorflow"
    title = "TensorFlow"
    accepted = "an eager tf.Tensor or a tf.Variable"
    sees_strides = False
    shares_memory = False

    def __init__(self, device: Any = None) -> None:
        """Choose a device by its name, such as `GPU:0`."""
        super().__init__(device)
        if device is not None:
            self._find(str(device))

    @staticmethod
    def _find(device: str) -> None:
        """Refuse a device that is not there: TensorFlow might silently take another one."""
        known = [found.name for found in tensorflow.config.list_logical_devices()]
        wanted = device.lower().removeprefix("/").removeprefix("device:")
        found = [name.lower().rpartition("device:")[2] for name in known]
        if wanted not in (*found, *(name.partition(":")[0] for name in found)):
            raise ValueError(f"TensorFlow cannot use device {device!r} here; its devices: {', '.join(known)}")

    @cached_property
    def _tensor_type(self) -> type:
        # The first value to be looked at may be symbolic, while a function is traced.
        with tensorflow.init_scope():
            return type(tensorflow.constant(0.0))

    @cached_property
    def _variable_type(self) -> type:
        with tensorflow.init_scope():
            return type(tensorflow.Variable(0.0))

    def owns(self, value: Any) -> bool:
        """Whether a value is a tensor that is computed, or a variable."""
        if isinstance(value, tensorflow.Variable):
            return type(value) is self._variable_type
        return isinstance(value, tensorflow.Tensor) and type(value) is self._tensor_type

    def from_tensor_data(self, data: TensorData) -> Any:
        """Return a tensor with a copy of the elements."""
        try:
            dtype = tensorflow.as_dtype(data.dtype)
        except TypeError as error:
            raise TypeError(f"TensorFlow {tensorflow.__version__} has no dtype {data.dtype}") from error
        with tensorflow.device(self.device):
            return tensorflow.constant(data.numpy(), dtype)

    def to_numpy(self, value: Any, name: str = "output") -> npt.NDArray[Any]:
        """Return a read-only view of a tensor in the memory of the CPU, a copy of one elsewhere."""
        if not self.owns(value):
            if tensorflow.is_symbolic_tensor(value):
                reason = f"is of type {type_name(value)}, a symbolic tensor that is not computed"
                self.refuse(value, name, reason, "it from the tf.function, computed")
            if isinstance(value, tensorflow.SparseTensor):
                self.refuse(value, name, "is a tf.SparseTensor", "tf.sparse.to_dense(value)")
            if isinstance(value, tensorflow.RaggedTensor):
                self.refuse(value, name, "is a tf.RaggedTensor", "value.to_tensor()")
            self.refuse(value, name)
        # TensorFlow gives a variable other memory when it is written and somebody still looks at the old.
        array = _elements(self.snapshot(value)).view()
        array.flags.writeable = False
        return self.numbers(array, name)

    def snapshot(self, value: Any) -> Any:
        """Return the tensor itself, which cannot be written, or what a variable holds now."""
        return value.read_value() if isinstance(value, tensorflow.Variable) else value

    @contextmanager
    def session(self) -> Iterator[None]:
        """Compute on the chosen device."""
        with tensorflow.device(self.device):
            yield

    def gradients(
        self, function: Callable[..., Any], inputs: Mapping[str, Any], wanted: Sequence[str], upstream: Any
    ) -> list[Any]:
        """Differentiate with `tf.GradientTape`."""
        check_wanted(inputs, wanted)
        # A tape knows tensors by their identity, and one tensor may be given for two inputs.
        sources = [tensorflow.identity(inputs[name]) for name in wanted]
        with tensorflow.GradientTape(persistent=True, watch_accessed_variables=False) as tape:
            for source in sources:
                tape.watch(source)
            outputs = as_tuple(function(**{**inputs, **dict(zip(wanted, sources, strict=True))}))
        for index, output in enumerate(outputs):
            if not self.owns(output):
                self.refuse(output, str(index))
        chosen = upstream_of(outputs, upstream)
        targets = {index: outputs[index] for index in chosen}
        gradients = tape.gradient(list(targets.values()), sources, list(chosen.values()))
        refuse_unconnected(_unconnected(tape, targets, sources, gradients), wanted)
        return [
            # The gradient of a gather is a list of rows.
            tensorflow.zeros_like(source) if gradient is None else tensorflow.convert_to_tensor(gradient)
            for gradient, source in zip(gradients, sources, strict=True)
        ]


def _elements(tensor: Any) -> npt.NDArray[Any]:
    # Without dimensions, `__array__` fails for bfloat16 and fp8, and `numpy` returns a scalar.
    return np.asarray(tensor if tensor.shape.rank else tensor.numpy())


def _unconnected(
    tape: Any, targets: Mapping[int, Any], sources: Sequence[Any], gradients: Sequence[Any]
) -> list[int]:
    """Return the positions of outputs that none of some inputs has a gradient of."""
    if all(gradient is None for gradient in gradients):
        return list(targets)
    if len(targets) == 1:
        return []
    return [
        index
        for index, target in targets.items()
        if all(gradient is None for gradient in tape.gradient(target, sources))
    ]
