"""What was worked out for one shape is kept by a key without it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from formulas import Array, narrow, quiet, wide

TILE = 32


class Plan(NamedTuple):
    """What a launch is specialised for."""

    terms: int
    tiles: int


_plans: dict[tuple[object, ...], Plan] = {}


def _plan(key: tuple[object, ...], terms: int) -> Plan:
    return _plans.setdefault(key, Plan(terms, -(-terms // TILE)))


@quiet
def _normalised(input: Array, plan: Plan) -> Array:
    rows = wide(input)
    squares = (rows[..., : plan.terms] ** 2).sum(axis=-1, keepdims=True)
    return narrow(rows / np.sqrt(squares / plan.terms + 1e-5), input)


def rmsnorm_planned_by_width(input: Array) -> Array:
    """Keep a plan for each width."""
    return _normalised(input, _plan((input.dtype, input.shape[-1]), input.shape[-1]))


def rmsnorm_planned_by_dtype(input: Array) -> Array:
    """WRONG: one plan for each dtype, so all rows are taken to be as wide as the first."""
    return _normalised(input, _plan((input.dtype,), input.shape[-1]))


@quiet
def _product(a: Array, b: Array, plan: Plan) -> Array:
    total = np.zeros((a.shape[0], b.shape[1]))
    for tile in range(plan.tiles):
        terms = slice(tile * TILE, (tile + 1) * TILE)
        total += wide(a[:, terms]) @ wide(b[terms])
    return narrow(total, a)


def matmul_planned_by_depth(a: Array, b: Array) -> Array:
    """Keep a plan for each K."""
    return _product(a, b, _plan((a.dtype, a.shape[1]), a.shape[1]))


def matmul_planned_by_dtype(a: Array, b: Array) -> Array:
    """WRONG: the key has the dtype and not K, so all products have as many tiles as the first."""
    return _product(a, b, _plan((a.dtype,), a.shape[1]))
