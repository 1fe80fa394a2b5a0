"""A kernel as it is launched: what the compiler is told of it, and what its launch table says."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

DTYPES = {"float32": "fp32", "float16": "fp16", "bfloat16": "bf16"}
"""Dtypes of cases, and what Triton calls them."""


@dataclass(frozen=True)
class Variant:
    """One compilation of a kernel."""

    label: str
    """Its part of the file's name."""
    dtype: str
    when: str
    constants: dict[str, int]
    warps: int = 4


@dataclass(frozen=True)
class Kernel:
    """A kernel, as it is launched."""

    name: str
    file: str
    grid: tuple[str | int, str | int, str | int]
    arguments: tuple[str, ...]
    """Tensors and expressions, in the order of the kernel's arguments that are no constants."""
    types: tuple[str, ...]
    """Triton's types of them; `*` alone is a pointer to the dtype of the case."""
    variants: tuple[Variant, ...]


def variants_of(
    dtypes: Iterable[str], made: Iterable[tuple[str, str, dict[str, int], int]], *needs: str
) -> tuple[Variant, ...]:
    """Return variants by label, `when`, constants and warps, each in every dtype; all need `needs`."""
    chosen = tuple(dtypes)
    variants = []
    for label, when, constants, warps in made:
        for dtype in chosen:
            conditions = [f"dtype == '{dtype}'", when, *needs]
            name = f"{dtype}_{label}" if label else dtype
            text = " && ".join(condition for condition in conditions if condition)
            variants.append(Variant(name, dtype, text, constants, warps))
    return tuple(variants)


def kernels(
    file: str,
    names: Iterable[str],
    grid: tuple[str | int, ...],
    arguments: Iterable[tuple[str, str]],
    variants: tuple[Variant, ...],
) -> list[Kernel]:
    """Return kernels of the same arguments, which are given with Triton's types of them."""
    x, y, z = (*grid, 1, 1)[:3]
    given = tuple(arguments)
    expressions, types = tuple(text for text, _ in given), tuple(kind for _, kind in given)
    return [Kernel(name, file, (x, y, z), expressions, types, variants) for name in names]


def tensors(*names: str) -> list[tuple[str, str]]:
    """Return arguments that are tensors of the dtype of the case."""
    return [(name, "*") for name in names]


def numbers(kind: str, *expressions: str) -> list[tuple[str, str]]:
    """Return arguments that are numbers of one type."""
    return [(expression, kind) for expression in expressions]


def strides(name: str, *axes: int) -> list[tuple[str, str]]:
    """Return strides of a tensor as arguments."""
    return [(f"stride({name}, {axis})", "i64") for axis in axes]


def type_of(kind: str, dtype: str) -> str:
    """Return the type of an argument in the signature that Triton is given."""
    return f"*{DTYPES[dtype]}" if kind == "*" else kind
