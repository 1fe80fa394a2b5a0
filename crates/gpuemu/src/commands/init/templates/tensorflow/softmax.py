"""Softmax along the last dim, tile by tile with a running maximum, as a GPU kernel computes it."""

import tensorflow as tf

TILE = 64
NOTHING = float("-inf")


def load(input, start, dtype):
    """Load a tile of every row; lanes beyond the end are -inf, so that they add exp(-inf) = 0 to the sum."""
    part = tf.cast(input[..., start : start + TILE], dtype)
    padding = [[0, 0]] * (len(part.shape) - 1) + [[0, TILE - part.shape[-1]]]
    return tf.pad(part, padding, constant_values=NOTHING)


def softmax(input):
    """Return exp(x - max) / sum(exp(x - max)), accumulated in float32 or wider."""
    dtype = tf.float64 if input.dtype == tf.float64 else tf.float32
    rows = (*input.shape[:-1], 1)
    maximum = tf.fill(rows, tf.constant(NOTHING, dtype))
    total = tf.zeros(rows, dtype)
    for start in range(0, input.shape[-1], TILE):
        tile = load(input, start, dtype)
        largest = tf.maximum(maximum, tf.reduce_max(tile, -1, keepdims=True))
        # As long as a row had only -inf there is nothing to subtract: -inf - -inf would be NaN.
        shift = tf.where(largest == NOTHING, tf.zeros_like(largest), largest)
        total = total * tf.exp(maximum - shift) + tf.reduce_sum(tf.exp(tile - shift), -1, keepdims=True)
        maximum = largest
    return tf.cast(tf.exp(tf.cast(input, dtype) - maximum) / total, input.dtype)
