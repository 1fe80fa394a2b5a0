"""JAX arrays: copies of tensors, without strides."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import cached_property
from threading import local
from typing import Any

import jax
import jax.numpy
import numpy as np
import numpy.typing as npt

from gpuemu._arrays.dtypes import numpy_dtype
from gpuemu.frameworks.base import BaseAdapter, TensorData, type_name
from gpuemu.frameworks.differentiation import as_tuple, check_wanted, refuse_unconnected, upstream_of


class JaxAdapter(BaseAdapter):
    """Hands over copies.

    JAX could take over aligned memory as it is. But it counts on an array never changing: computations are
    dispatched and read their inputs later, and compiled ones may hand an input on as their output. Memory
    that gpuemu refills for the next call would change arrays under a computation, or results that the user
    kept. So every array gets one copy in aligned memory that nobody else knows, which JAX then takes over.
    """

    name = "jax"
    title = "JAX"
    accepted = "a jax.Array"
    sees_strides = False
    shares_memory = False

    def __init__(self, device: Any = None) -> None:
        """Choose a device: a `jax.Device`, or the name of a platform such as `gpu`."""
        super().__init__(device)
        self._device = device
        self._local = local()
        if isinstance(device, str):
            try:
                self._device = jax.devices(device)[0]
            except RuntimeError as error:
                raise ValueError(f"JAX cannot use device {device!r} here: {error}") from error

    @cached_property
    def _array_type(self) -> type:
        # `jax.Array` is a base class of tracers and key arrays too; the one of computed arrays has no
        # public name. The first value to be looked at may be a tracer, while it is traced.
        with jax.ensure_compile_time_eval():
            return type(jax.device_put(np.zeros((), np.float32)))

    def owns(self, value: Any) -> bool:
        """Whether a value is an array that is computed, and no tracer."""
        return isinstance(value, jax.Array) and type(value) is self._array_type

    def from_tensor_data(self, data: TensorData) -> Any:
        """Return an array with a copy of the elements."""
        dtype = numpy_dtype(data.dtype)
        if getattr(jax.numpy, data.dtype, None) is None:
            raise TypeError(f"JAX {jax.__version__} has no dtype {data.dtype}")
        array = data.contiguous().numpy()
        if dtype.itemsize == 8 and not jax.config.jax_enable_x64:
            array = _narrowed(array)
        return jax.device_put(array, self._device)

    def to_numpy(self, value: Any, name: str = "output") -> npt.NDArray[Any]:
        """Return a read-only view of an array in the memory of the CPU, a copy of one elsewhere."""
        if not self.owns(value):
            if isinstance(value, jax.core.Tracer):
                reason = f"is of type {type_name(value)}, a tracer that stands for an array"
                self.refuse(value, name, reason, "it from the transformed function, computed")
            self.refuse(value, name)
        if value.is_deleted():
            self.refuse(value, name, "was deleted, perhaps because it was donated to another call")
        if not value.is_fully_addressable:
            self.refuse(value, name, "lies on devices of other processes", "an array of this process")
        return self.numbers(np.asarray(value.block_until_ready()), name)

    def snapshot(self, value: Any) -> Any:
        """Return a copy: an array cannot be written, but it can be donated."""
        return jax.numpy.array(value, copy=True)

    def prepare(self, dtypes: Sequence[str]) -> None:
        """Let JAX have 64-bit numbers where the inputs have some, and only there.

        Elsewhere numbers without a dtype of their own have 32 bits, as where the function is really used:
        indices of 64 bits beside floats of 32 do not make it wide. In a session the setting holds for this
        thread until the session ends, elsewhere it stays.
        """
        floats = [dtype for dtype in dtypes if "float" in dtype]
        wide = "float64" in floats or (not floats and any(dtype.endswith("64") for dtype in dtypes))
        setting: ExitStack | None = getattr(self._local, "setting", None)
        if setting is not None:
            setting.close()
        if bool(jax.config.jax_enable_x64) == wide:
            return
        if setting is None:
            jax.config.update("jax_enable_x64", wide)
        else:
            setting.enter_context(jax.enable_x64(wide))

    @contextmanager
    def session(self) -> Iterator[None]:
        """Bring back the setting of 64-bit numbers at the end."""
        outer = getattr(self._local, "setting", None)
        with ExitStack() as setting:
            self._local.setting = setting
            try:
                yield
            finally:
                self._local.setting = outer

    def gradients(
        self, function: Callable[..., Any], inputs: Mapping[str, Any], wanted: Sequence[str], upstream: Any
    ) -> list[Any]:
        """Differentiate with `jax.vjp`."""
        check_wanted(inputs, wanted)

        def outputs_of(*values: Any) -> tuple[Any, ...]:
            return as_tuple(function(**{**inputs, **dict(zip(wanted, values, strict=True))}))

        outputs, pull = jax.vjp(outputs_of, *(inputs[name] for name in wanted))
        chosen = upstream_of(outputs, upstream)
        whole = [index for index in chosen if not jax.numpy.issubdtype(outputs[index].dtype, np.inexact)]
        refuse_unconnected(whole, wanted)

        def pulled(*gradients: Any) -> Any:
            given = dict(zip(chosen, gradients, strict=True))
            return pull(tuple(given.get(i, _no_gradient(output)) for i, output in enumerate(outputs)))

        # JAX answers zero for an output that nothing flows from; the trace says that it is not used.
        unused = _unused_arguments(jax.make_jaxpr(pulled)(*chosen.values()).jaxpr)
        refuse_unconnected((index for index, idle in zip(chosen, unused, strict=True) if idle), wanted)
        return list(pulled(*chosen.values()))


def _narrowed(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return 64-bit whole numbers in 32 bits, as JAX without 64-bit numbers does, but never wrapped."""
    if array.dtype.kind == "f":
        raise TypeError(
            "JAX has float64 only with jax_enable_x64; call prepare with the dtypes of the inputs"
        )
    narrow = np.dtype(f"{array.dtype.kind}4")
    limits = np.iinfo(narrow)
    if array.size and (array.min() < limits.min or array.max() > limits.max):
        raise TypeError(f"JAX without jax_enable_x64 cannot hold these {array.dtype} values in {narrow}")
    return array.astype(narrow)


def _no_gradient(output: Any) -> Any:
    if jax.numpy.issubdtype(output.dtype, np.inexact):
        return jax.numpy.zeros_like(output)
    return np.zeros(output.shape, jax.dtypes.float0)


def _unused_arguments(program: Any) -> list[bool]:
    """Return which arguments of a traced program enter none of its results."""
    needed = {id(variable) for variable in program.outvars}
    for equation in reversed(program.eqns):
        if any(id(variable) in needed for variable in equation.outvars):
            needed.update(id(variable) for variable in equation.invars)
    return [id(variable) not in needed for variable in program.invars]
