"""Which frameworks there are, and the adapter of each."""

from __future__ import annotations

import importlib
import sys
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from typing import Any

from gpuemu.frameworks.base import BaseAdapter, type_name


@dataclass(frozen=True)
class _Framework:
    """Where an adapter is, and what it needs."""

    module: str
    adapter: str
    package: str
    """The package that must be there, which is also the name of the extra that installs it."""
    arrays: str
    """What its arrays are, in words."""


_FRAMEWORKS = {
    "numpy": _Framework("gpuemu.frameworks.numpy", "NumpyAdapter", "numpy", "numpy.ndarray"),
    "pytorch": _Framework("gpuemu.frameworks.pytorch", "PyTorchAdapter", "torch", "torch.Tensor"),
    "jax": _Framework("gpuemu.frameworks.jax", "JaxAdapter", "jax", "jax.Array"),
    "tensorflow": _Framework(
        "gpuemu.frameworks.tensorflow", "TensorFlowAdapter", "tensorflow", "eager tf.Tensor or tf.Variable"
    ),
}
_ALIASES = {"torch": "pytorch", "tf": "tensorflow"}

FRAMEWORKS = tuple(_FRAMEWORKS)
"""The names of the frameworks."""


def adapter(name: str, device: Any = None) -> BaseAdapter:
    """Return the adapter of a framework by its name: one for each device.

    `torch` and `tf` are other names of `pytorch` and `tensorflow`. `ValueError` for an unknown name,
    `ImportError` where the framework is not installed.
    """
    full = _ALIASES.get(name, name)
    if full not in _FRAMEWORKS:
        known = [*_FRAMEWORKS, *_ALIASES]
        near = get_close_matches(str(name).lower(), known, 1)
        hint = f"did you mean {near[0]!r}? " if near else ""
        raise ValueError(f"unknown framework {name!r}; {hint}known frameworks: {', '.join(known)}")
    return _adapter(full, device)


@cache
def _adapter(name: str, device: Any) -> BaseAdapter:
    framework = _FRAMEWORKS[name]
    try:
        importlib.import_module(framework.package)
    except ModuleNotFoundError as error:
        if error.name != framework.package:
            raise
        raise ImportError(
            f"framework {name!r} needs the package {framework.package}: pip install {framework.package}",
            name=framework.package,
        ) from error
    made: BaseAdapter = getattr(importlib.import_module(framework.module), framework.adapter)(device)
    return made


def adapter_for(value: Any) -> BaseAdapter:
    """Return the adapter whose array a value is, by its exact type.

    A framework that is not loaded has made no array, so none is loaded for this.
    """
    for name, framework in _FRAMEWORKS.items():
        # An entry of None, or a module that is being imported, has made no array either.
        if getattr(sys.modules.get(framework.package), "__version__", None) is None:
            continue
        found = adapter(name)
        if found.owns(value):
            return found
    accepted = ", ".join(framework.arrays for framework in _FRAMEWORKS.values())
    raise TypeError(f"{type_name(value)} is no array that gpuemu can read; it reads {accepted}")
