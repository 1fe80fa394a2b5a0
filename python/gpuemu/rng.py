"""Reproducible random tensors: the NumPy mirror of the Rust generator, byte for byte.

One seed gives the same bytes in Rust, in Python and on every machine. Both implementations are
checked against `testdata/rng_vectors.json`, so a test written in Python can rebuild the inputs of
a case that the engine reported from its seed alone.
"""

from __future__ import annotations

import math
import secrets
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from gpuemu._arrays.dtypes import DTYPES, dtype_name, encode, numpy_dtype
from gpuemu._arrays.numbers import seed_number
from gpuemu._cases.shapes import CostTerm, Dimension, cost_of, draw_size, draw_sizes
from gpuemu._cases.streams import BLOCK_ELEMENTS, Stream, block_words, case_seed, escalation_seed
from gpuemu._cases.values import STRATEGIES, Recipe, flag_recipe, range_recipe, recipe, resolve

__all__ = [
    "BLOCK_ELEMENTS",
    "DTYPES",
    "STRATEGIES",
    "CostTerm",
    "Dimension",
    "Recipe",
    "Stream",
    "case_seed",
    "cost_of",
    "draw_size",
    "draw_sizes",
    "encode",
    "escalation_seed",
    "fill",
    "flag_recipe",
    "generate_random_tensor",
    "mirrored_tensor",
    "range_recipe",
    "recipe",
    "resolve",
]

# Blocks made together: enough to outweigh the interpreter, few enough to keep the words in cache.
_GROUP_BLOCKS = 512


def fill(dtype: Any, recipe: Recipe, case_seed: int, input_name: str, count: int) -> npt.NDArray[Any]:
    """Return the `count` elements of the tensor called `input_name` of a case, as one dimension."""
    elements = np.empty(count, dtype=numpy_dtype(dtype_name(dtype)))
    group_elements = _GROUP_BLOCKS * BLOCK_ELEMENTS
    for start in range(0, count, group_elements):
        end = min(start + group_elements, count)
        words = block_words(case_seed, input_name, start // BLOCK_ELEMENTS, end - start)
        elements[start:end] = encode(recipe.values(words, start), dtype)
    return elements


def generate_random_tensor(
    shape: int | Sequence[int],
    dtype: Any = "float32",
    seed: int | None = 0,
    name: str = "input",
    strategy: str = "regular",
) -> npt.NDArray[Any]:
    """Return the tensor that the engine generates for the input `name` of the case seed `seed`.

    That holds for an input without a domain of its own; the elements fill the shape in row-major
    order. A bool tensor holds flags, whatever the strategy: rounding real numbers would make
    nearly all of them true. Without a seed (None), every call gives another tensor.
    """
    sizes = (shape,) if isinstance(shape, int) else tuple(shape)
    element_type = dtype_name(dtype)
    if seed is None:
        seed = secrets.randbits(64)
    seed = seed_number(seed)
    # An unknown name is refused here, with those that are known.
    resolve(strategy, seed)
    elements = np.empty(math.prod(sizes), dtype=numpy_dtype(element_type))
    try:
        from gpuemu._native import random_tensor
    except ImportError:
        return mirrored_tensor(sizes, element_type, seed, name, strategy)
    random_tensor(elements.view(np.uint8), element_type, seed, name, strategy)
    return elements.reshape(sizes)


def mirrored_tensor(
    shape: int | Sequence[int], dtype: Any, seed: int, name: str = "input", strategy: str = "regular"
) -> npt.NDArray[Any]:
    """Return the same tensor as `generate_random_tensor`, made in NumPy alone: its second opinion."""
    sizes = (shape,) if isinstance(shape, int) else tuple(shape)
    element_type = dtype_name(dtype)
    decided = recipe(resolve(strategy, seed), element_type, seed, name)
    if element_type == "bool":
        decided = flag_recipe(seed, name)
    return fill(element_type, decided, seed, name, math.prod(sizes)).reshape(sizes)
