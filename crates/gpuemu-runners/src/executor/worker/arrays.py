"""Arrays of NumPy and of frameworks, made of the bytes of a request and turned into bytes again."""

import importlib
import sys
from typing import Any, NoReturn


class LoadError(Exception):
    """A callable that cannot be had, and why."""


class Arrays:
    """The arrays of a framework."""

    def __init__(self, framework: str) -> None:
        """Import the framework."""
        self.numpy = self.load("numpy", "NumPy is needed to hand over arrays")
        package = {"pytorch": "torch", "jax": "jax", "tensorflow": "tensorflow"}.get(framework)
        self.make = self.from_numpy
        # JAX and TensorFlow copy, or take over what nobody may change.
        self.share_storages = package in (None, "torch")
        self.jax_numpy: Any = None
        self.dtypes: dict[str, Any] = {}
        if package:
            self.framework = self.load(package, f"the project's framework is {framework}")
            self.make = getattr(self, f"for_{package}")
        if package == "jax":
            self.jax_numpy = importlib.import_module("jax.numpy")

    @staticmethod
    def load(package: str, why: str) -> Any:
        """Import a package that cannot be done without."""
        try:
            return importlib.import_module(package)
        except Exception as error:
            hint = "install it there"
            if package != "numpy":
                hint = 'set framework = "numpy" in [project] if the op works on NumPy arrays'
            raise LoadError(
                f"{why}, but {package} cannot be imported by {sys.executable}: {error}; {hint}"
            ) from None

    def dtype(self, name: str) -> Any:
        """Return NumPy's dtype of a name."""
        try:
            return self.dtypes[name]
        except KeyError:
            pass
        try:
            found = self.dtypes[name] = self.numpy.dtype(name)
        except TypeError:
            raise TypeError(
                f"NumPy knows the dtype {name} only with the package ml_dtypes, which {sys.executable} lacks"
            ) from None
        return found

    def from_numpy(self, view: dict[str, Any], storage: bytearray) -> Any:
        """Return a view with real strides over the whole storage."""
        dtype, shape = self.dtype(view["dtype"]), view["shape"]
        if 0 in shape:
            return self.numpy.empty(shape, dtype)
        size = dtype.itemsize
        strides = [stride * size for stride in view["strides"]]
        return self.numpy.ndarray(shape, dtype, storage, view["offset"] * size, strides)

    def for_torch(self, view: dict[str, Any], storage: bytearray) -> Any:
        """Return a tensor over the whole storage."""
        torch, shape, strides = self.framework, view["shape"], view["strides"]
        dtype = getattr(torch, view["dtype"])
        if 0 in shape:
            return torch.empty(shape, dtype=dtype)
        if any(stride < 0 for stride in strides):
            # Tensors cannot run backwards.
            storage = bytearray(self.from_numpy(view, storage).tobytes())
            return torch.frombuffer(storage, dtype=dtype).view(shape)
        return torch.frombuffer(storage, dtype=dtype).as_strided(shape, strides, view["offset"])

    def prepare(self, views: list[dict[str, Any]]) -> None:
        """Let JAX have 64-bit numbers where the inputs have some, and only there.

        Elsewhere numbers without a dtype of their own have 32 bits, as where the function is really used.
        """
        if self.jax_numpy is None:
            return
        floats = [view["dtype"] for view in views if "float" in view["dtype"]]
        wide = "float64" in floats or (not floats and any(view["dtype"].endswith("64") for view in views))
        if bool(self.framework.config.jax_enable_x64) != wide:
            self.framework.config.update("jax_enable_x64", wide)

    def for_jax(self, view: dict[str, Any], storage: bytearray) -> Any:
        """Return an array; JAX has no strides."""
        return self.jax_numpy.asarray(self.from_numpy(view, storage))

    def for_tensorflow(self, view: dict[str, Any], storage: bytearray) -> Any:
        """Return a tensor; TensorFlow has no strides."""
        return self.framework.constant(self.from_numpy(view, storage))

    def is_exact(self, value: Any) -> bool:
        """Whether a value is an array by its type alone, and computes nothing when it is looked at."""
        numpy, kind = self.numpy, type(value)
        if kind is numpy.ndarray:
            return True
        if isinstance(value, numpy.generic):
            # What NumPy returns where no dimension is left. A class of the user's own has another type there.
            return numpy.dtype(kind).type is kind
        torch = sys.modules.get("torch")
        if torch is not None and kind in (torch.Tensor, torch.nn.Parameter):
            return True
        package = kind.__module__.partition(".")[0]
        if package in ("jax", "jaxlib"):
            return isinstance(value, getattr(sys.modules.get("jax"), "Array", ()))
        if package == "tensorflow" and (tensorflow := sys.modules.get("tensorflow")):
            return isinstance(value, (tensorflow.Tensor, tensorflow.Variable))
        return False

    def refuse(self, name: str, value: Any) -> NoReturn:
        """Refuse something that was returned in place of an array."""
        kind = type(value)
        module = "" if kind.__module__ == "builtins" else f"{kind.__module__}."
        text = f"output '{name}' is of type {module}{kind.__qualname__}"
        if isinstance(value, self.numpy.ndarray):
            text += ", a subclass of numpy.ndarray; return numpy.array(...) of it"
        else:
            text += ", which is no array"
        if isinstance(value, list):
            text += "; return an array, or a tuple or dict of arrays"
        raise TypeError(text)

    def to_numpy(self, name: str, value: Any) -> tuple[str, Any]:
        """Return the dtype of a result and an array of its elements, in the result's memory if possible."""
        torch = sys.modules.get("torch")
        if torch is not None and isinstance(value, torch.Tensor):
            tensor = value.detach().cpu().resolve_conj().resolve_neg()
            dtype = str(tensor.dtype).removeprefix("torch.")
            if dtype == "bfloat16" or dtype.startswith("float8"):
                tensor = tensor.view(torch.int16 if dtype == "bfloat16" else torch.uint8)
            return dtype, tensor.numpy()
        array = self.numpy.asarray(value)
        if array.dtype.byteorder == ">":
            array = array.astype(array.dtype.newbyteorder("<"))
        if array.dtype.hasobject or array.dtype.kind in "USmM":
            raise TypeError(f"output '{name}' is of type {type(value).__name__}, not an array of numbers")
        return array.dtype.name, array
