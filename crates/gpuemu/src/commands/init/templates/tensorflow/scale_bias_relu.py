"""The epilogue of a linear layer in one pass: scale, add the bias, cut off below zero."""

import tensorflow as tf


def scale_bias_relu(x, bias, scale=1.0):
    """Return max(x * scale + bias, 0), computed in float32 or wider and rounded once."""
    dtype = tf.float64 if x.dtype == tf.float64 else tf.float32
    sums = tf.cast(x, dtype) * tf.constant(scale, dtype) + tf.cast(bias, dtype)
    # NaN is not below zero: it stays.
    return tf.cast(tf.where(sums < 0, tf.zeros_like(sums), sums), x.dtype)
