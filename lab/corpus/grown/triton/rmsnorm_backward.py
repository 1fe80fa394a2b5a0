"""Gradients of rmsnorm: one program goes through all rows and adds up the gradient of the weight."""

import triton
import triton.language as tl


@triton.jit
def rmsnorm_backward_strided(
    result_ptr,
    grad_weight_ptr,
    grad_ptr,
    x_ptr,
    weight_ptr,
    rows,
    columns,
    grad_row,
    grad_column,
    x_row,
    x_column,
    weight_column,
    eps,
    BLOCK: tl.constexpr,
):
    """The upstream gradient has strides of its own: 0 where one row stands for all."""
    lanes = tl.arange(0, BLOCK)
    mask = lanes < columns
    weight = tl.load(weight_ptr + lanes * weight_column, mask=mask, other=0.0).to(tl.float32)
    grad_weight = tl.zeros((BLOCK,), tl.float32)
    for i in range(0, rows):
        row = i.to(tl.int64)
        grad = tl.load(grad_ptr + row * grad_row + lanes * grad_column, mask=mask, other=0.0).to(tl.float32)
        x = tl.load(x_ptr + row * x_row + lanes * x_column, mask=mask, other=0.0).to(tl.float32)
        root = tl.sqrt(tl.sum(x * x, axis=0) / columns + eps)
        normed = x / root
        upstream = grad * weight
        common = tl.sum(upstream * normed, axis=0) / columns
        tl.store(result_ptr + row * columns + lanes, (upstream - normed * common) / root, mask=mask)
        grad_weight += grad * normed
    tl.store(grad_weight_ptr + lanes, grad_weight, mask=mask)


@triton.jit
def rmsnorm_backward_stride_0(
    result_ptr,
    grad_weight_ptr,
    grad_ptr,
    x_ptr,
    weight_ptr,
    rows,
    columns,
    grad_row,
    grad_column,
    x_row,
    x_column,
    weight_column,
    eps,
    BLOCK: tl.constexpr,
):
    """WRONG: the upstream gradient is taken to lie as the input does, also where it is expanded."""
    lanes = tl.arange(0, BLOCK)
    mask = lanes < columns
    weight = tl.load(weight_ptr + lanes * weight_column, mask=mask, other=0.0).to(tl.float32)
    grad_weight = tl.zeros((BLOCK,), tl.float32)
    for i in range(0, rows):
        row = i.to(tl.int64)
        grad = tl.load(grad_ptr + row * x_row + lanes * x_column, mask=mask, other=0.0).to(tl.float32)
        x = tl.load(x_ptr + row * x_row + lanes * x_column, mask=mask, other=0.0).to(tl.float32)
        root = tl.sqrt(tl.sum(x * x, axis=0) / columns + eps)
        normed = x / root
        upstream = grad * weight
        common = tl.sum(upstream * normed, axis=0) / columns
        tl.store(result_ptr + row * columns + lanes, (upstream - normed * common) / root, mask=mask)
        grad_weight += grad * normed
    tl.store(grad_weight_ptr + lanes, grad_weight, mask=mask)
