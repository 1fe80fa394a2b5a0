"""Every config of an autotuned kernel, checked rather than timed."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from triton.compiler.errors import CompileTimeAssertionFailure
from triton.runtime.errors import OutOfResources, PTXASError

from gpuemu._arrays.dtypes import FLOAT_FORMATS
from gpuemu._launches.kernel_arguments import is_array, numpy_view
from gpuemu.triton import ConfigsDisagreeWarning, Disagreement

if TYPE_CHECKING:
    from gpuemu.triton import Session

Arrays = dict[str, npt.NDArray[Any]]

_WIDE_STEPS, _NARROW_STEPS = 64.0, 4.0
"""Units in the last place of the largest element by which results may differ.

In wide dtypes sums come in another order; narrow ones have one rounding after them."""


def run_every_config(session: Session, tuner: Any, values: Sequence[Any], named: Mapping[str, Any]) -> Any:
    """Run all configs on the same data, compare what they give and leave the result of the first."""
    tuner.nargs = dict(zip(tuner.arg_names, values, strict=False))
    try:
        return _checked(session, tuner, values, named)
    finally:
        tuner.nargs = None


def _checked(session: Session, tuner: Any, values: Sequence[Any], named: Mapping[str, Any]) -> Any:
    configs = tuner.prune_configs(named) if len(tuner.configs) > 1 else tuner.configs
    if not session.every_config:
        configs = configs[:1]
    arrays = {
        name: numpy_view(value, name) for name, value in {**tuner.nargs, **named}.items() if is_array(value)
    }
    before = _copies(arrays)
    first: tuple[Any, Any, Arrays] | None = None
    refusal: Exception | None = None
    title = tuner.base_fn.__name__
    with session.together():
        for config in configs:
            _restore(arrays, before)
            session._config = str(config)
            try:
                kernel = _run(tuner, config, values, named, arrays)
            except (OutOfResources, CompileTimeAssertionFailure, PTXASError) as error:
                session.skipped_configs.append((title, str(config), str(error)))
                refusal = error
                continue
            finally:
                session._config = None
            if first is None:
                first = (kernel, config, _copies(arrays))
            else:
                _compare(session, title, (first[1], first[2]), (config, arrays))
        if first is None:
            raise refusal or ValueError(f"{title} has no config")
        _restore(arrays, first[2])
    tuner.best_config = first[1]
    return first[0]


def _run(tuner: Any, config: Any, values: Sequence[Any], named: Mapping[str, Any], arrays: Arrays) -> Any:
    full = {**tuner.nargs, **named, **config.all_kwargs()}
    if config.pre_hook is not None:
        config.pre_hook(full)
    if tuner.user_defined_pre_hook:
        tuner.pre_hook(full, reset_only=True)
    else:
        for name in tuner.reset_to_zero:
            if name in arrays:
                arrays[name][...] = np.zeros((), arrays[name].dtype)
    return tuner.fn.run(*values, **named, **config.all_kwargs())


def _copies(arrays: Arrays) -> Arrays:
    return {name: array.copy() for name, array in arrays.items()}


def _restore(arrays: Arrays, copies: Arrays) -> None:
    for name, copy in copies.items():
        if arrays[name].flags.writeable:
            arrays[name][...] = copy


def _compare(session: Session, title: str, first: tuple[Any, Arrays], other: tuple[Any, Arrays]) -> None:
    for name, array in other[1].items():
        elements, largest = difference(first[1][name], array)
        if elements:
            found = Disagreement(title, name, str(other[0]), str(first[0]), elements, largest)
            session.disagreements.append(found)
            warnings.warn(ConfigsDisagreeWarning(str(found)), stacklevel=6)


def difference(left: npt.NDArray[Any], right: npt.NDArray[Any]) -> tuple[int, float]:
    """Return how many elements differ by more than rounding, and by how much at most."""
    name = left.dtype.name
    if name not in FLOAT_FORMATS and left.dtype.kind != "f":
        differing = left != right
        if not differing.any():
            return 0, 0.0
        gaps = np.abs(left[differing].astype(np.float64) - right[differing].astype(np.float64))
        return int(differing.sum()), float(gaps.max())
    wide = name in ("float32", "float64")
    step = {"float64": 2.0**-52, "float32": 2.0**-23}.get(name) or 2.0 ** -FLOAT_FORMATS[name].mantissa_bits
    one, two = left.astype(np.float64), right.astype(np.float64)
    both = np.isfinite(one) & np.isfinite(two)
    scale = float(np.abs(one[both]).max()) if both.any() else 0.0
    with np.errstate(invalid="ignore"):
        gaps = np.where((one == two) | (np.isnan(one) & np.isnan(two)), 0.0, np.abs(one - two))
    gaps = np.where(np.isnan(gaps), np.inf, gaps)
    differing = gaps > (_WIDE_STEPS if wide else _NARROW_STEPS) * step * scale
    return int(differing.sum()), float(gaps[differing].max()) if differing.any() else 0.0
