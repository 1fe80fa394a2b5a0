"""The precision class of a kernel: what rounding it declares to do."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from gpuemu._arrays.dtypes import dtype_name

ORDERS = ("sequential", "tile", "tile_tree", "split", "lanes32", "pairwise", "online")
"""The orders of summation that can be declared; `tile`, `tile_tree`, `split` and `online` with a size."""

VARIANCES = ("two_pass", "welford", "one_pass")
"""The ways to a variance that can be declared."""

ROUNDINGS = ("nearest", "toward_zero", "stochastic")
"""The final conversions that can be declared."""

_SIZED = ("tile", "tile_tree", "split", "online")


@dataclass(frozen=True, repr=False)
class Precision:
    """What a correct kernel of this class is allowed to do. What is not declared is not allowed."""

    accumulate: str | None = None
    """Dtype of running sums and of the arithmetic: by default float32, or float64 for float64."""
    order: str | tuple[str, int] | None = None
    """Order of summation, such as `"pairwise"` or `("tile", 64)`; unknown allows any order."""
    intermediate: str | None = None
    """Dtype to which intermediates are rounded, such as the probabilities of flash attention."""
    tf32: bool = False
    """Inputs of dot products are rounded to tf32."""
    variance: str | None = None
    """`"two_pass"`, `"welford"` or `"one_pass"`; unknown allows the first two."""
    folded: bool = False
    """exp2(x·c − m·c) in place of exp2((x − m)·c)."""
    fast_exp: bool = True
    """exp within 2 ulp, as GPUs have it."""
    fast_division: bool = True
    """Division within 2 ulp, as GPUs have it."""
    fast_tanh: bool = False
    """`tanh.approx`, with a relative error of 2⁻¹¹."""
    fast_erf: bool = False
    """A short polynomial for erf: absolute error 2⁻²⁰, infinity and overflow not looked after."""
    flush_to_zero: bool = False
    """Subnormal numbers may become zero."""
    tensor_core: bool = False
    """Sums of tensor cores, which align and truncate."""
    rounding: str = "nearest"
    """The final conversion: `"nearest"`, `"toward_zero"` or `"stochastic"`."""
    atomics: bool = False
    """Sums by atomics: two runs may differ in bits."""

    def __repr__(self) -> str:
        """Return what is declared, as it would be written in a program."""
        declared = {item.name: getattr(self, item.name) for item in dataclasses.fields(self)}
        usual = {item.name: item.default for item in dataclasses.fields(self)}
        words = [f"{name}={value!r}" for name, value in declared.items() if value != usual[name]]
        return f"gpuemu.Precision({', '.join(words)})"

    def to_json(self) -> dict[str, Any]:
        """Return it as the engine reads it; names that are unknown are refused."""
        for name in ("accumulate", "intermediate"):
            if (dtype := getattr(self, name)) is not None:
                dtype_name(dtype)
        order = self.order[0] if isinstance(self.order, tuple) else self.order
        for name, value, known in (
            ("order", order, ORDERS),
            ("variance", self.variance, VARIANCES),
            ("rounding", self.rounding, ROUNDINGS),
        ):
            if value is not None and value not in known:
                raise ValueError(f"unknown {name} {value!r} of a precision; known: {', '.join(known)}")
        if isinstance(self.order, tuple) != (order in _SIZED):
            sized = ", ".join(_SIZED)
            raise ValueError(
                f"the order of a precision is {self.order!r}; {sized} have a size, as in ('tile', 64)"
            )
        written = {
            field.name: getattr(self, field.name)
            for field in dataclasses.fields(self)
            if getattr(self, field.name) is not None
        }
        if isinstance(self.order, tuple):
            written["order"] = {self.order[0]: self.order[1]}
        return written


def precision_json(precision: Precision | Mapping[str, Any] | str | None) -> dict[str, Any] | None:
    """Return a declared precision as the engine reads it; a dtype's name declares the accumulator."""
    if precision is None:
        return None
    if isinstance(precision, Precision):
        return precision.to_json()
    if isinstance(precision, str):
        return Precision(accumulate=precision).to_json()
    if not isinstance(precision, Mapping):
        kind = type(precision).__name__
        raise TypeError(f"precision is a {kind}; give a gpuemu.Precision, a dict, or the dtype of sums")
    known = [field.name for field in dataclasses.fields(Precision)]
    for name in precision:
        if name not in known:
            raise ValueError(f"a precision has no '{name}'; it has {', '.join(known)}")
    return Precision(**precision).to_json()
