"""The epilogue of a linear layer in one pass: scale, add the bias, cut off below zero."""

import jax
import jax.numpy as jnp


@jax.jit
def scale_bias_relu(x, bias, scale=1.0):
    """Return max(x * scale + bias, 0), computed in float32 or wider and rounded once."""
    dtype = jnp.promote_types(x.dtype, jnp.float32)
    sums = x.astype(dtype) * jnp.asarray(scale, dtype) + bias.astype(dtype)
    # NaN is not below zero: it stays.
    return jnp.where(sums < 0, 0, sums).astype(x.dtype)
