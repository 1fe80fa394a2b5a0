"""Gradients of layernorm: one program goes through all rows and adds up those of weight and bias."""

import triton
import triton.language as tl


@triton.jit
def layernorm_backward_rows(
    result_ptr,
    grad_weight_ptr,
    grad_bias_ptr,
    grad_ptr,
    x_ptr,
    weight_ptr,
    rows,
    columns,
    eps,
    BLOCK: tl.constexpr,
):
    """grad_weight is the sum of the upstream gradient times the normalised input, grad_bias its own."""
    lanes = tl.arange(0, BLOCK)
    mask = lanes < columns
    weight = tl.load(weight_ptr + lanes, mask=mask, other=0.0).to(tl.float32)
    grad_weight = tl.zeros((BLOCK,), tl.float32)
    grad_bias = tl.zeros((BLOCK,), tl.float32)
    for i in range(0, rows):
        start = i.to(tl.int64) * columns
        grad = tl.load(grad_ptr + start + lanes, mask=mask, other=0.0).to(tl.float32)
        x = tl.load(x_ptr + start + lanes, mask=mask, other=0.0).to(tl.float32)
        centred = tl.where(mask, x - tl.sum(x, axis=0) / columns, 0.0)
        root = tl.sqrt(tl.sum(centred * centred, axis=0) / columns + eps)
        normed = centred / root
        upstream = grad * weight
        common = normed * (tl.sum(upstream * normed, axis=0) / columns)
        result = (upstream - tl.sum(upstream, axis=0) / columns - common) / root
        tl.store(result_ptr + start + lanes, result, mask=mask)
        grad_weight += grad * normed
        grad_bias += grad
    tl.store(grad_weight_ptr + lanes, grad_weight, mask=mask)
    tl.store(grad_bias_ptr + lanes, grad_bias, mask=mask)


@triton.jit
def layernorm_backward_no_upstream(
    result_ptr,
    grad_weight_ptr,
    grad_bias_ptr,
    grad_ptr,
    x_ptr,
    weight_ptr,
    rows,
    columns,
    eps,
    BLOCK: tl.constexpr,
):
    """WRONG: the gradient of the weight is that of a sum: it leaves out what comes from above."""
    lanes = tl.arange(0, BLOCK)
    mask = lanes < columns
    weight = tl.load(weight_ptr + lanes, mask=mask, other=0.0).to(tl.float32)
    grad_weight = tl.zeros((BLOCK,), tl.float32)
    grad_bias = tl.zeros((BLOCK,), tl.float32)
    for i in range(0, rows):
        start = i.to(tl.int64) * columns
        grad = tl.load(grad_ptr + start + lanes, mask=mask, other=0.0).to(tl.float32)
        x = tl.load(x_ptr + start + lanes, mask=mask, other=0.0).to(tl.float32)
        centred = tl.where(mask, x - tl.sum(x, axis=0) / columns, 0.0)
        root = tl.sqrt(tl.sum(centred * centred, axis=0) / columns + eps)
        normed = centred / root
        upstream = grad * weight
        common = normed * (tl.sum(upstream * normed, axis=0) / columns)
        result = (upstream - tl.sum(upstream, axis=0) / columns - common) / root
        tl.store(result_ptr + start + lanes, result, mask=mask)
        grad_weight += normed
        grad_bias += grad
    tl.store(grad_weight_ptr + lanes, grad_weight, mask=mask)
    tl.store(grad_bias_ptr + lanes, grad_bias, mask=mask)
