"""Rotary position embedding, compiled by jax.jit."""

import functools

import jax
import jax.numpy as jnp


@functools.partial(jax.jit, static_argnames=("interleaved",))
def rope(input, position, base=10000.0, interleaved=False):
    """Rotate pair i of P by position * base^(-i/P), computed in float32 whatever dtype the tensor has."""
    pairs = input.shape[-1] // 2
    frequency = jnp.exp(-jnp.log(base) * jnp.arange(pairs, dtype=jnp.float32) / max(pairs, 1))
    # A position of its own for every token, the same for all of its heads.
    angle = position.astype(jnp.float32)[:, :, None, None] * frequency
    cosine, sine = jnp.cos(angle), jnp.sin(angle)
    wide = input.astype(jnp.float32)
    if interleaved:
        first, second = wide[..., 0::2], wide[..., 1::2]
    else:
        first, second = wide[..., :pairs], wide[..., pairs:]
    rotated = (first * cosine - second * sine, second * cosine + first * sine)
    out = jnp.stack(rotated, -1).reshape(input.shape) if interleaved else jnp.concatenate(rotated, -1)
    return out.astype(input.dtype)
