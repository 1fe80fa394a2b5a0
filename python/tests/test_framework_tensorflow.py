"""TensorFlow's own ops pass, in eager mode and under `tf.function`; wrong kernels on its tensors do not."""

from __future__ import annotations

import pytest
from framework_packages import require
from framework_suites import DTYPES, assert_not_flagged, precision

import gpuemu

tf = require("tensorflow")


def wide(tensor):
    return None if tensor is None else tf.cast(tensor, tf.float32)


def layer_norm(input, weight=None, bias=None, eps=1e-5):
    x = wide(input)
    mean = tf.reduce_mean(x, -1, keepdims=True)
    y = (x - mean) * tf.math.rsqrt(
        tf.reduce_mean(tf.math.squared_difference(x, mean), -1, keepdims=True) + eps
    )
    y = y if weight is None else y * wide(weight)
    return tf.cast(y if bias is None else y + wide(bias), input.dtype)


def rms_norm(input, weight=None, eps=1e-5):
    x = wide(input)
    y = x * tf.math.rsqrt(tf.reduce_mean(x * x, -1, keepdims=True) + eps)
    return tf.cast(y if weight is None else y * wide(weight), input.dtype)


def attention(q, k, v, causal=False):
    scores = tf.matmul(wide(q), wide(k), transpose_b=True) * (q.shape[-1] ** -0.5)
    if causal:
        visible = tf.linalg.band_part(tf.ones(scores.shape[-2:], tf.bool), -1, 0)
        scores = tf.where(visible, scores, float("-inf"))
    return tf.cast(tf.matmul(tf.nn.softmax(scores), wide(v)), q.dtype)


def cross_entropy(input, target, ignore_index=-100):
    ignored = target == ignore_index
    losses = tf.nn.sparse_softmax_cross_entropy_with_logits(
        tf.where(ignored, tf.zeros_like(target), target), input
    )
    return tf.where(ignored, tf.zeros_like(losses), losses)


OPS = {
    "softmax": (tf.nn.softmax, {"rounded": True}, {}),
    "layernorm": (layer_norm, {}, {}),
    "rmsnorm": (rms_norm, {}, {}),
    "matmul": (tf.matmul, {}, {}),
    "gelu": (lambda x: tf.nn.gelu(x, approximate=False), {"rounded": True}, {}),
    "attention": (attention, {}, {"sizes": {"G": 1, "H": [1, 2], "B": [1, 2]}}),
    "cross_entropy": (cross_entropy, {"rounded": True}, {"sizes": {"V": (1, 300)}}),
}


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("op", OPS)
def test_its_own_ops_are_not_flagged(op, dtype):
    function, declared, options = OPS[op]
    assert_not_flagged(op, function, "tensorflow", dtype, precision(dtype, **declared), 8, **options)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("op", ["softmax", "layernorm", "rmsnorm", "matmul", "gelu", "cross_entropy"])
def test_its_own_gradients_are_not_flagged(op, dtype):
    function, declared, options = OPS[op]
    report = gpuemu.check(
        op,
        function,
        framework="tensorflow",
        cases=8,
        seed=11,
        dtypes=[dtype],
        values="regular",
        precision=precision(dtype, **declared),
        check_backward=True,
        store=False,
        **options,
    )
    assert report.backward.report.passed >= 6


def test_accumulation_in_bfloat16_is_caught():
    def matmul(accumulator):
        @tf.function(reduce_retracing=True)
        def product(a, b):
            total = tf.zeros((tf.shape(a)[0], tf.shape(b)[1]), accumulator)
            for k in tf.range(tf.shape(a)[1]):
                added = wide(total) + wide(a[:, k, None]) * wide(b[None, k, :])
                total = tf.cast(added, accumulator)
            return tf.cast(total, a.dtype)

        return product

    options = {
        "framework": "tensorflow",
        "dtypes": ["bfloat16"],
        "budget": 50_000,
        "store": False,
        "repeats": 2,
    }
    options |= {"sizes": {"K": [2048], "M": [3], "N": [3]}, "values": "regular"}
    options |= {"precision": precision("bfloat16")}
    report = gpuemu.check("matmul", matmul(tf.bfloat16), cases=4, raises=False, **options)
    assert report.report.failed == 4
    assert gpuemu.check("matmul", matmul(tf.float32), cases=4, **options)


def test_a_traced_function_is_checked_as_it_is():
    @tf.function(reduce_retracing=True)
    def softmax(x):
        return tf.nn.softmax(x)

    options = {"framework": "tensorflow", "cases": 20, "store": False, "values": "regular"}
    assert gpuemu.check("softmax", softmax, precision=precision("float32"), **options)

    @tf.function(reduce_retracing=True)
    def wrong(x):
        return tf.nn.softmax(x * 1.001)

    assert not gpuemu.check("softmax", wrong, raises=False, precision=precision("float32"), **options)


def test_a_symbolic_tensor_or_a_list_does_not_stand_in_for_a_result():
    report = gpuemu.check(
        "relu", lambda x: [tf.nn.relu(x)], framework="tensorflow", cases=2, store=False, raises=False
    )
    assert "is of type list" in str(report)


def test_a_block_of_validations_uses_tensorflow():
    from gpuemu.frameworks import validate_tensorflow

    with validate_tensorflow() as validation:
        validation.run("softmax", tf.nn.softmax, tf.reshape(tf.range(12.0), (3, 4)))
    with pytest.raises(gpuemu.ValidationError), validate_tensorflow() as validation:
        validation.run("softmax", lambda x: tf.nn.softmax(x, 0), tf.reshape(tf.range(12.0), (3, 4)))
