"""The built-in ops written a second time, from their definitions.

The engine's references are what every verdict rests on, and a wrong formula in one of them would
be invisible to tests that use it as the truth. So these come from the text that `gpuemu ops NAME`
prints and not from the Rust code. Sums are rounded once (`math.fsum`), so that the error left is
that of the reference. The defaults of parameters are repeated here.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

Reals = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]
Numbers = npt.NDArray[Any]

erfc = np.vectorize(math.erfc, otypes=[np.float64])


class Expected(NamedTuple):
    """One output and, where terms cancel in it, their magnitude."""

    values: Reals
    scale: Reals | None = None


def total(terms: Reals) -> Reals:
    """Return sums along the last axis, rounded once; where a term is not finite IEEE 754 decides."""
    leading = terms.shape[:-1]
    rows = terms.reshape(math.prod(leading), terms.shape[-1])
    sums = [math.fsum(row) if np.isfinite(row).all() else float(np.sum(row)) for row in rows]
    return np.array(sums, dtype=np.float64).reshape(leading)


def largest(x: Reals) -> Reals:
    """Return the maximum along the last axis, which stays as an axis of size 1."""
    maximum: Reals = np.max(x, axis=-1, keepdims=True, initial=-math.inf)
    return maximum


def log_of_sum(exponentials: Reals) -> Reals:
    """Return log(sum) of terms of which the largest is 1, precise even where it dwarfs the others."""
    minus_one = np.full((*exponentials.shape[:-1], 1), -1.0)
    return np.log1p(total(np.concatenate([exponentials, minus_one], axis=-1)))


def logistic(x: Reals) -> Reals:
    """Return 1/(1 + exp(-x)) without an exponential that overflows."""
    power = np.exp(-np.abs(x))
    return np.where(x >= 0, 1.0, power) / (1.0 + power)


def relu(input: Reals) -> Expected:
    """max(x, 0)."""
    return Expected(np.maximum(input, 0.0))


def leaky_relu(input: Reals, negative_slope: float = 0.01) -> Expected:
    """X if x > 0 else negative_slope*x."""
    return Expected(np.where(input > 0, input, negative_slope * input))


def elu(input: Reals, alpha: float = 1.0) -> Expected:
    """X if x > 0 else alpha*(exp(x) - 1)."""
    return Expected(np.where(input > 0, input, alpha * np.expm1(np.minimum(input, 0.0))))


def gelu(input: Reals) -> Expected:
    """0.5*x*(1 + erf(x/sqrt(2))), where 1 + erf(z) is erfc(-z), which does not cancel."""
    return Expected(0.5 * input * erfc(-input / math.sqrt(2.0)))


def gelu_tanh(input: Reals) -> Expected:
    """0.5*x*(1 + tanh(u)), where 0.5*(1 + tanh(u)) is the logistic function of 2u."""
    argument = math.sqrt(2.0 / math.pi) * (input + 0.044715 * input**3)
    return Expected(input * logistic(2.0 * argument))


def sigmoid(input: Reals) -> Expected:
    """1/(1 + exp(-x))."""
    return Expected(logistic(input))


def silu(input: Reals) -> Expected:
    """X times its logistic function."""
    return Expected(input * logistic(input))


def swiglu(gate: Reals, up: Reals) -> Expected:
    """silu(gate)*up."""
    return Expected(gate * logistic(gate) * up)


def tanh(input: Reals) -> Expected:
    """tanh(x)."""
    return Expected(np.tanh(input))


def sum_of_rows(input: Reals) -> Expected:
    """sum(x)."""
    return Expected(total(input), total(np.abs(input)))


def mean(input: Reals) -> Expected:
    """sum(x)/H."""
    return Expected(total(input) / input.shape[-1], total(np.abs(input)) / input.shape[-1])


def max_of_rows(input: Reals, propagate_nan: bool = True) -> Expected:
    """max(x); NaN wins or is skipped, and a row of nothing but NaN has no other maximum."""
    return Expected((np.maximum if propagate_nan else np.fmax).reduce(input, axis=-1))


def cumsum(input: Reals, exclusive: bool = False, reverse: bool = False) -> Expected:
    """out[i] = sum(x[0..=i]), or x[0..i], or from the other end x[i..H] or x[i+1..H]."""
    width = input.shape[-1]
    summed = np.tri(width, k=-1 if exclusive else 0, dtype=bool)
    prefixes = np.where(summed.T if reverse else summed, input[..., None, :], 0.0)
    return Expected(total(prefixes), total(np.abs(prefixes)))


def softmax(input: Reals) -> Expected:
    """exp(x - max)/sum(exp(x - max))."""
    powers = np.exp(input - largest(input))
    return Expected(powers / total(powers)[..., None])


def log_softmax(input: Reals) -> Expected:
    """X - max - log(sum(exp(x - max)))."""
    below = input - largest(input)
    return Expected(below - log_of_sum(np.exp(below))[..., None], np.abs(below) + 1.0)


def cross_entropy(input: Reals, target: Numbers) -> Expected:
    """Max + log(sum(exp(x - max))) - x[target]."""
    below = input - largest(input)
    of_target = np.take_along_axis(below, target[:, None], axis=-1)[:, 0]
    return Expected(log_of_sum(np.exp(below)) - of_target, np.abs(of_target) + 1.0)


def l2norm(
    input: Reals, eps: float = 1e-12, eps_outside: bool = False, eps_is_minimum: bool = False
) -> Expected:
    """x/sqrt(sum(x^2) + eps), with eps outside of the root, or the larger of both in place of their sum."""
    guarded = np.maximum if eps_is_minimum else np.add
    squares = total(input**2)
    divisor = guarded(np.sqrt(squares), eps) if eps_outside else np.sqrt(guarded(squares, eps))
    return Expected(input / divisor[..., None])


def rmsnorm(
    input: Reals, weight: Reals | None = None, eps: float = 1e-5, unit_offset: bool = False
) -> Expected:
    """x/sqrt(mean(x^2) + eps)*weight, or *(1 + weight); without a weight nothing is scaled."""
    normalised = input / np.sqrt(total(input**2) / input.shape[-1] + eps)[..., None]
    if weight is None:
        return Expected(normalised)
    return Expected(normalised * (1.0 + weight if unit_offset else weight))


def layernorm(
    input: Reals, weight: Reals | None = None, bias: Reals | None = None, eps: float = 1e-5
) -> Expected:
    """(x - mean)/sqrt(var + eps)*weight + bias, with x - mean = (H*x - sum(x))/H rounded once."""
    width = input.shape[-1]
    repeated = np.broadcast_to(-input[..., None, :], (*input.shape, width))
    centred = total(np.concatenate([width * input[..., None], repeated], axis=-1)) / width
    deviation = np.sqrt(total(centred**2) / width + eps)[..., None]
    magnitude = np.abs(input) + total(np.abs(input))[..., None] / width
    values, scale = centred / deviation, magnitude / deviation
    if weight is not None:
        values, scale = values * weight, scale * np.abs(weight)
    if bias is not None:
        values, scale = values + bias, scale + np.abs(bias)
    return Expected(values, scale)


def matmul(a: Reals, b: Reals) -> Expected:
    """out[i,j] = sum_k a[i,k]*b[k,j]."""
    products = a[:, None, :] * b.T[None, :, :]
    return Expected(total(products), total(np.abs(products)))


def rope(input: Reals, position: Numbers, base: float = 10000.0, interleaved: bool = False) -> Expected:
    """Pairs rotated by position*base^(-2i/D), where D = 2*P is the width and i = 0..P-1 the pair."""
    width = input.shape[-1]
    angles = position[:, :, None, None] * np.power(base, -2.0 * np.arange(width // 2) / width)
    cosine, sine = np.cos(angles), np.sin(angles)
    first = (Ellipsis, slice(0, None, 2) if interleaved else slice(0, width // 2))
    second = (Ellipsis, slice(1, None, 2) if interleaved else slice(width // 2, None))
    x, y = input[first], input[second]
    values, scale = np.empty_like(input), np.empty_like(input)
    values[first], values[second] = x * cosine - y * sine, y * cosine + x * sine
    # The rounding of the angle turns the pair by as much.
    scale[first] = scale[second] = (np.abs(x) + np.abs(y)) * (1.0 + angles)
    return Expected(values, scale)


def visible_keys(queries: int, keys: int, mask: Flags | None, causal: bool, window: int) -> Flags:
    """Return which key each query sees; a window ends at the query, be it causal or not."""
    query, key = np.arange(queries)[:, None], np.arange(keys)[None, :]
    seen = np.ones((queries, keys), dtype=bool) if mask is None else mask.copy()
    if causal or window > 0:
        seen &= key <= query
    if window > 0:
        seen &= key > query - window
    return seen


def attention(
    q: Reals,
    k: Reals,
    v: Reals,
    mask: Flags | None = None,
    scale: float = 0.0,
    causal: bool = False,
    window: int = 0,
    softcap: float = 0.0,
    masked_rows_zero: bool = False,
) -> dict[str, Expected]:
    """Softmax over the visible keys of softcap(q.k*scale), times v, and the logarithm of its sum.

    Query head h has key head h // G. `softcap` c > 0 turns a score s into c*tanh(s/c), before the mask.
    """
    batches, heads, queries, width = q.shape
    factor = scale if scale != 0.0 else 1.0 / math.sqrt(width)
    seen = visible_keys(queries, k.shape[2], mask, causal, window)
    shape = (batches, heads, queries)
    out, out_scale = np.zeros((*shape, width)), np.zeros((*shape, width))
    logarithm, logarithm_scale = np.full(shape, -math.inf), np.zeros(shape)
    for batch, head, query in np.ndindex(shape):
        keys = k[batch, head // (heads // k.shape[1])][seen[query]]
        values = v[batch, head // (heads // k.shape[1])][seen[query]]
        if len(keys) == 0:
            # The logarithm of an empty sum is -Infinity, and its softmax 0/0.
            out[batch, head, query] = 0.0 if masked_rows_zero else math.nan
            continue
        products = q[batch, head, query] * keys
        scores, condition = total(products) * factor, np.max(total(np.abs(products))) * abs(factor)
        if softcap > 0.0:
            scores = softcap * np.tanh(scores / softcap)
        powers = np.exp(scores - np.max(scores))
        weighted = (powers / total(powers))[:, None] * values
        out[batch, head, query] = total(weighted.T)
        if np.max(scores) != -math.inf:  # otherwise every term of the sum is 0
            logarithm[batch, head, query] = np.max(scores) + log_of_sum(powers)
        # The rounding of a score changes its weight by as much.
        out_scale[batch, head, query] = total(np.abs(weighted).T) * (1.0 + 2.0 * condition)
        logarithm_scale[batch, head, query] = 1.0 + condition
    return {"out": Expected(out, out_scale), "lse": Expected(logarithm, logarithm_scale)}


FORMULAS: dict[str, Callable[..., Expected | dict[str, Expected]]] = {
    "attention": attention,
    "cross_entropy": cross_entropy,
    "cumsum": cumsum,
    "elu": elu,
    "gelu": gelu,
    "gelu_tanh": gelu_tanh,
    "l2norm": l2norm,
    "layernorm": layernorm,
    "leaky_relu": leaky_relu,
    "log_softmax": log_softmax,
    "matmul": matmul,
    "max": max_of_rows,
    "mean": mean,
    "relu": relu,
    "rmsnorm": rmsnorm,
    "rope": rope,
    "sigmoid": sigmoid,
    "silu": silu,
    "softmax": softmax,
    "sum": sum_of_rows,
    "swiglu": swiglu,
    "tanh": tanh,
}
