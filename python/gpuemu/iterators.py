"""Shapes, dtypes, layouts and whole cases to loop over: those that the engine draws.

Each takes `seed=`; without one, every loop is another.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from gpuemu import _native
from gpuemu._arrays.dtypes import DTYPES, dtype_name, numpy_dtype
from gpuemu._arrays.numbers import seed_number
from gpuemu._client.project import project_reference
from gpuemu._client.record import Record
from gpuemu._runs.op_run import random_seed
from gpuemu._runs.settings import opened, settings_of
from gpuemu.custom_op import CustomOp
from gpuemu.frameworks.tensor_data import TensorData
from gpuemu.rng import case_seed, generate_random_tensor

FLOAT_DTYPES = tuple(name for name in DTYPES if "float" in name)
"""The names of the floating-point dtypes."""


@dataclass(frozen=True)
class Case(Record):
    """One case of an op."""

    op: str
    seed: int
    dtype: str
    inputs: dict[str, npt.NDArray[Any]]
    """The inputs by name, with real strides."""
    kwargs: dict[str, Any]
    """Arguments that are not tensors."""
    case: dict[str, Any]
    """Everything that decides the case."""


def cases(op: str | CustomOp, count: int = 100, seed: int | None = None, **settings: Any) -> Iterator[Case]:
    """Loop over cases of an op; `settings` as `gpuemu.check` takes them (dtypes, layouts, values, sizes…)."""
    ready = opened(op, settings_of("a loop over cases", settings).options(project_reference(), None))
    name = op if isinstance(op, str) else op.name
    base = random_seed() if seed is None else seed_number(seed)
    for index in range(count):
        number = case_seed(base, index)
        text, inputs, kwargs = ready.case(number)
        descriptor = json.loads(text)
        arrays = {key: _array(tensor) for key, tensor in inputs}
        yield Case(name, number, descriptor["dtype"], arrays, json.loads(kwargs), descriptor)


def shapes(
    op: str | CustomOp, count: int = 100, seed: int | None = None, **settings: Any
) -> Iterator[dict[str, tuple[int, ...]]]:
    """Loop over shapes of the inputs of an op, by name."""
    for case in cases(op, count, seed, **settings):
        yield {name: array.shape for name, array in case.inputs.items()}


def dtypes(floats_only: bool = True) -> Iterator[np.dtype[Any]]:
    """Loop over NumPy's dtypes of everything that gpuemu can judge."""
    for name in FLOAT_DTYPES if floats_only else DTYPES:
        yield numpy_dtype(name)


def layouts(
    shape: int | Sequence[int],
    dtype: Any = "float32",
    seed: int | None = None,
    strategy: str = "regular",
) -> Iterator[tuple[str, npt.NDArray[Any]]]:
    """Loop over arrays of one shape, one for each memory layout: its name, and the array with real strides.

    The gaps between elements hold NaN, so that a kernel that ignores strides shows. All arrays have the same
    elements, but for `expanded`, whose entries along the first dim are all the first one.
    """
    sizes = (shape,) if isinstance(shape, int) else tuple(shape)
    name = dtype_name(dtype)
    number = random_seed() if seed is None else seed
    elements = generate_random_tensor(math.prod(sizes), name, number, strategy=strategy).view(np.uint8)
    known: set[str] = set()
    for layout in _native.layout_names():
        found, tensor = _native.lay_out(layout, name, list(sizes), elements)
        if found not in known:
            known.add(found)
            yield found, _array(tensor)


def _array(tensor: _native.Tensor) -> npt.NDArray[Any]:
    memory, dtype, shape, strides, offset = tensor
    return TensorData(memory, dtype, tuple(shape), tuple(strides), offset).numpy()
