"""JAX's own ops pass under jit, wrong kernels on its arrays do not: forward and backward."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from framework_packages import require
from framework_suites import DTYPES, LONG, precision

import gpuemu

jax = require("jax")
jnp = jax.numpy


@partial(jax.jit, static_argnames="eps")
def layer_norm(input, weight=None, bias=None, eps=1e-5):
    x = input.astype(jnp.float32)
    mean = x.mean(-1, keepdims=True)
    y = (x - mean) * jax.lax.rsqrt(((x - mean) ** 2).mean(-1, keepdims=True) + eps)
    y = y if weight is None else y * weight
    return (y if bias is None else y + bias).astype(input.dtype)


@partial(jax.jit, static_argnames="eps")
def rms_norm(input, weight=None, eps=1e-5):
    x = input.astype(jnp.float32)
    y = x * jax.lax.rsqrt((x * x).mean(-1, keepdims=True) + eps)
    return (y if weight is None else y * weight).astype(input.dtype)


@jax.jit
def cross_entropy(input, target):
    ignored = target == -100
    classes = jnp.where(ignored, 0, target)
    chosen = jnp.take_along_axis(jax.nn.log_softmax(input.astype(jnp.float32)), classes[:, None], 1)
    return jnp.where(ignored, 0, -chosen[:, 0]).astype(input.dtype)


@partial(jax.jit, static_argnames="causal")
def attention(q, k, v, causal=False):
    # On a CPU it does not multiply float16.
    dtype = jnp.float32 if q.dtype == jnp.float16 else q.dtype
    heads_last = [jnp.swapaxes(tensor, 1, 2).astype(dtype) for tensor in (q, k, v)]
    output = jax.nn.dot_product_attention(*heads_last, is_causal=causal)
    return jnp.swapaxes(output, 1, 2).astype(q.dtype)


OPS = {
    "softmax": (jax.jit(jax.nn.softmax), {"rounded": True}, {"H": [3, 33, 129]}, {}),
    "layernorm": (layer_norm, {}, {"H": [3, 33, 129]}, {}),
    "rmsnorm": (rms_norm, {}, {"H": [3, 33, 129]}, {}),
    "matmul": (jax.jit(jnp.matmul), {}, {"M": [3, 17], "K": [5, 64], "N": [2, 9]}, {}),
    "gelu": (jax.jit(partial(jax.nn.gelu, approximate=False)), {"rounded": True}, {}, {}),
    "attention": (
        attention,
        {"rounded": True},
        {"B": 2, "H": 2, "G": [1, 2], "M": [5, 16], "N": [4, 16], "D": [8]},
        {"kwargs": {"masked_rows_zero": True}},
    ),
    "cross_entropy": (cross_entropy, {}, {"V": [3, 33], "N": [2, 9]}, {}),
}
"""Each with a few sizes: JAX compiles for every shape that it meets."""

VALUES = ("regular", "tiny", "mixed")


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("op", OPS)
def test_its_own_ops_are_not_flagged(op, dtype):
    function, declared, sizes, options = OPS[op]
    shared = {
        "framework": "jax",
        "dtypes": [dtype],
        "precision": precision(dtype, **declared),
        "store": False,
        "repeats": 5,
        "seed": 7,
        **options,
    }
    # Where scores reach 1e15, XLA's fused attention is NaN on a CPU although the same code is right without
    # jit: gpuemu reports it.
    chosen = ("regular", "tiny") if op == "attention" else VALUES
    for values in chosen:
        report = gpuemu.check(op, function, cases=4, values=values, sizes=sizes, budget=4000, **shared)
        assert report.report.passed >= 3
    if op in LONG:
        gpuemu.check(op, function, cases=3, sizes=LONG[op], budget=100_000, values="regular", **shared)


def test_accumulation_in_bfloat16_is_caught():
    def matmul(accumulator):
        @jax.jit
        def product(a, b):
            def step(total, pair):
                column, row = pair
                added = total.astype(jnp.float32) + column[:, None].astype(jnp.float32) * row[None, :]
                return added.astype(accumulator), None

            start = jnp.zeros((a.shape[0], b.shape[1]), accumulator)
            total, _ = jax.lax.scan(step, start, (a.T, b))
            return total.astype(a.dtype)

        return product

    sizes = {"K": [2048], "M": [3], "N": [3]}
    options = {"framework": "jax", "dtypes": ["bfloat16"], "sizes": sizes, "budget": 50_000, "store": False}
    options |= {"repeats": 2, "values": "regular", "precision": precision("bfloat16")}
    report = gpuemu.check("matmul", matmul(jnp.bfloat16), cases=6, raises=False, **options)
    assert report.report.failed == 6
    assert gpuemu.check("matmul", matmul(jnp.float32), cases=6, **options)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("op", ["softmax", "layernorm", "matmul", "gelu"])
def test_its_own_gradients_are_not_flagged(op, dtype):
    function, declared, sizes, options = OPS[op]
    report = gpuemu.check(
        op,
        function,
        framework="jax",
        cases=4,
        seed=11,
        sizes={**sizes, "H": [5, 17]} if "H" in sizes else sizes,
        dtypes=[dtype],
        values="regular",
        precision=precision(dtype, **declared),
        check_backward=True,
        store=False,
        repeats=2,
        **options,
    )
    assert report.backward.report.passed >= 3


def test_a_wrong_custom_gradient_is_caught():
    @jax.custom_vjp
    def softmax(x):
        return jax.nn.softmax(x)

    def forward(x):
        y = softmax(x)
        return y, y

    softmax.defvjp(forward, lambda y, gradient: (y * gradient,))
    report = gpuemu.check(
        "softmax", softmax, framework="jax", cases=4, store=False, repeats=2, raises=False,
        values="regular", sizes={"H": [5, 17]}, check_backward=True,
    )  # fmt: skip
    assert report.status == "passed"
    assert report.backward.status == "failed"


def test_the_setting_for_64_bits_is_as_before_afterwards():
    before = jax.config.jax_enable_x64
    options = {"framework": "jax", "cases": 3, "store": False, "repeats": 1, "sizes": {"H": [9]}}
    assert gpuemu.check("softmax", jax.nn.softmax, dtypes=["float64"], values="regular", **options)
    assert jax.config.jax_enable_x64 == before


def test_a_tracer_or_a_numpy_array_does_not_stand_in_for_a_result():
    report = gpuemu.check(
        "relu", lambda x: np.maximum(np.asarray(x), 0), framework="jax", cases=2, store=False, raises=False
    )
    assert "is of type numpy." in str(report)


def test_layouts_are_said_to_be_unchecked():
    report = gpuemu.check(
        "softmax", jax.jit(jax.nn.softmax), framework="jax", cases=3, store=False, repeats=1, sizes={"H": [9]}
    )
    assert "layouts" in report.report.not_checked


def test_a_block_of_validations_uses_jax():
    from gpuemu.frameworks import validate_jax

    with validate_jax() as validation:
        output = validation.run("softmax", jax.nn.softmax, jnp.arange(12.0).reshape(3, 4))
        assert output.shape == (3, 4)
        assert validation.results[0].passed
