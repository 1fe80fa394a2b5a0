"""Gradient of cross entropy with respect to its logits, of any strides: one program a row."""

import triton
import triton.language as tl


@triton.jit
def cross_entropy_backward_rows(
    result_ptr, x_ptr, target_ptr, grad_ptr, columns, ignored, x_row, x_column, grad_row, BLOCK: tl.constexpr
):
    """The 1 of the target is taken off in float32, and the row's upstream gradient multiplies all of it."""
    row = tl.program_id(0).to(tl.int64)
    target = tl.load(target_ptr + row)
    grad = tl.load(grad_ptr + row * grad_row).to(tl.float32)
    lanes = tl.arange(0, BLOCK)
    mask = lanes < columns
    x = tl.load(x_ptr + row * x_row + lanes * x_column, mask=mask, other=-float("inf")).to(tl.float32)
    weights = tl.exp(x - tl.max(x, axis=0))
    probabilities = weights / tl.sum(weights, axis=0)
    result = grad * (probabilities - tl.where(lanes == target, 1.0, 0.0))
    tl.store(result_ptr + row * columns + lanes, tl.where(target == ignored, 0.0, result), mask=mask)


@triton.jit
def cross_entropy_backward_rounded(
    result_ptr, x_ptr, target_ptr, grad_ptr, columns, ignored, x_row, x_column, grad_row, BLOCK: tl.constexpr
):
    """WRONG: probabilities are rounded to the tensor's dtype before 1 is taken off: close to 1, 0 is left."""
    row = tl.program_id(0).to(tl.int64)
    target = tl.load(target_ptr + row)
    grad = tl.load(grad_ptr + row * grad_row).to(tl.float32)
    lanes = tl.arange(0, BLOCK)
    mask = lanes < columns
    x = tl.load(x_ptr + row * x_row + lanes * x_column, mask=mask, other=-float("inf")).to(tl.float32)
    weights = tl.exp(x - tl.max(x, axis=0))
    probabilities = (weights / tl.sum(weights, axis=0)).to(result_ptr.dtype.element_ty).to(tl.float32)
    result = grad * (probabilities - tl.where(lanes == target, 1.0, 0.0))
    tl.store(result_ptr + row * columns + lanes, tl.where(target == ignored, 0.0, result), mask=mask)


@triton.jit
def cross_entropy_backward_no_upstream(
    result_ptr, x_ptr, target_ptr, grad_ptr, columns, ignored, x_row, x_column, grad_row, BLOCK: tl.constexpr
):
    """WRONG: the gradient that comes from above is taken to be 1."""
    row = tl.program_id(0).to(tl.int64)
    target = tl.load(target_ptr + row)
    lanes = tl.arange(0, BLOCK)
    mask = lanes < columns
    x = tl.load(x_ptr + row * x_row + lanes * x_column, mask=mask, other=-float("inf")).to(tl.float32)
    weights = tl.exp(x - tl.max(x, axis=0))
    probabilities = weights / tl.sum(weights, axis=0)
    result = probabilities - tl.where(lanes == target, 1.0, 0.0)
    tl.store(result_ptr + row * columns + lanes, tl.where(target == ignored, 0.0, result), mask=mask)
