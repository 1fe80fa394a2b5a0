"""Results are kept by where the inputs lie, and not by what they hold."""

from __future__ import annotations

from formulas import Array, layernorm, matmul, tanh

_known: dict[tuple[object, ...], Array] = {}


def _at(array: Array) -> tuple[object, ...]:
    return array.ctypes.data, array.shape, array.strides, array.dtype


def layernorm_uncached(input: Array) -> Array:
    """Keep nothing."""
    return layernorm(input)


def layernorm_cached_by_address(input: Array) -> Array:
    """WRONG: what was computed for the same address and layout is returned again, whatever lies there now."""
    key = _at(input)
    if key not in _known:
        _known[key] = layernorm(input)
    return _known[key].copy()


def matmul_cached_by_contents(a: Array, b: Array) -> Array:
    """Keep results by what the operands hold: slow, and right."""
    key = (a.shape, b.shape, a.dtype, a.tobytes(), b.tobytes())
    if key not in _known:
        _known[key] = matmul(a, b)
    return _known[key].copy()


def matmul_cached_by_addresses(a: Array, b: Array) -> Array:
    """WRONG: weights seldom change, and a product that is kept by both addresses is wrong once they do."""
    key = _at(a) + _at(b)
    if key not in _known:
        _known[key] = matmul(a, b)
    return _known[key].copy()


def tanh_uncached(input: Array) -> Array:
    """Keep nothing."""
    return tanh(input)


def tanh_cached_by_identity(input: Array) -> Array:
    """WRONG: `id` is the address of the array object, which the next array may have."""
    key = (id(input), input.shape, input.dtype)
    if key not in _known:
        _known[key] = tanh(input)
    return _known[key].copy()
