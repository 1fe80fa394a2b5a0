"""WRONG: positions are converted to the dtype of the tensor before they become angles."""

import functools

import jax
import jax.numpy as jnp


@functools.partial(jax.jit, static_argnames=("interleaved",))
def rope(input, position, base=10000.0, interleaved=False):
    """Rotate by angles of too few bits: bfloat16 has no 257, and that token turns as its neighbour does."""
    pairs = input.shape[-1] // 2
    frequency = jnp.exp(-jnp.log(base) * jnp.arange(pairs, dtype=jnp.float32) / max(pairs, 1))
    angle = position.astype(input.dtype)[:, :, None, None] * frequency
    cosine, sine = jnp.cos(angle), jnp.sin(angle)
    wide = input.astype(jnp.float32)
    if interleaved:
        first, second = wide[..., 0::2], wide[..., 1::2]
    else:
        first, second = wide[..., :pairs], wide[..., pairs:]
    rotated = (first * cosine - second * sine, second * cosine + first * sine)
    out = jnp.stack(rotated, -1).reshape(input.shape) if interleaved else jnp.concatenate(rotated, -1)
    return out.astype(input.dtype)
