"""Cross entropy of one class a row, compiled to a graph by tf.function."""

import tensorflow as tf


@tf.function(reduce_retracing=True)
def loss(input, target, label_smoothing, ignore_index):
    """Return the loss of every row, 0 where it is ignored, computed in float32 or wider."""
    dtype = tf.float64 if input.dtype == tf.float64 else tf.float32
    logits = tf.cast(input, dtype)
    classes = tf.shape(logits)[-1]
    # Nothing is above the maximum: no exponential overflows, however large the logits are.
    largest = tf.reduce_max(logits, -1, keepdims=True)
    total = tf.reduce_sum(tf.exp(logits - largest), -1)
    log_sum = largest[:, 0] + tf.math.log(total)
    # What an ignored row would pick is of no interest, but has to be there.
    within = tf.clip_by_value(target, 0, tf.cast(classes, target.dtype) - 1)
    picked = log_sum - tf.gather(logits, within, batch_dims=1)
    smooth = tf.cast(label_smoothing, dtype)
    mixed = picked
    if smooth != 0:
        mixed = (1 - smooth) * picked + smooth * tf.reduce_mean(log_sum[:, None] - logits, -1)
    ignored = target == tf.cast(ignore_index, target.dtype)
    return tf.cast(tf.where(ignored, tf.zeros_like(mixed), mixed), input.dtype)


def cross_entropy(input, target, label_smoothing=0.0, ignore_index=-100):
    """Return the loss of every row."""
    # As tensors: for every new number of Python the graph would be traced again.
    return loss(input, target, tf.constant(label_smoothing, tf.float64), tf.constant(ignore_index, tf.int64))
