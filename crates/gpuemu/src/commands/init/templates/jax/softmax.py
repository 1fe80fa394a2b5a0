"""Softmax along the last dim, tile by tile with a running maximum, as a GPU kernel computes it."""

import jax
import jax.numpy as jnp

TILE = 64


@jax.jit
def softmax(input):
    """Return exp(x - max) / sum(exp(x - max)), accumulated in float32 or wider."""
    wide = input.astype(jnp.promote_types(input.dtype, jnp.float32))
    width, rows = input.shape[-1], (*input.shape[:-1], 1)
    # Lanes beyond the end of a row are -inf, so that they add exp(-inf) = 0 to the sum.
    padding = [(0, 0)] * (input.ndim - 1) + [(0, -width % TILE)]
    padded = jnp.pad(wide, padding, constant_values=-jnp.inf)

    def step(index, state):
        maximum, total = state
        tile = jax.lax.dynamic_slice_in_dim(padded, index * TILE, TILE, axis=-1)
        largest = jnp.maximum(maximum, tile.max(-1, keepdims=True))
        # As long as a row had only -inf there is nothing to subtract: -inf - -inf would be NaN.
        shift = jnp.where(largest == -jnp.inf, 0, largest)
        total = total * jnp.exp(maximum - shift) + jnp.exp(tile - shift).sum(-1, keepdims=True)
        return largest, total

    state = (jnp.full(rows, -jnp.inf, wide.dtype), jnp.zeros(rows, wide.dtype))
    if width > 0:
        state = jax.lax.fori_loop(0, padded.shape[-1] // TILE, step, state)
    maximum, total = state
    return (jnp.exp(wide - maximum) / total).astype(input.dtype)
