"""Gradient of softmax from its output, rows of any stride: one program a row."""

import triton
import triton.language as tl


@triton.jit
def softmax_backward_strided(
    result_ptr, grad_ptr, y_ptr, columns, grad_row, grad_column, y_row, y_column, BLOCK: tl.constexpr
):
    """The upstream gradient has strides of its own: 0 where one row stands for all."""
    row = tl.program_id(0).to(tl.int64)
    lanes = tl.arange(0, BLOCK)
    mask = lanes < columns
    grad = tl.load(grad_ptr + row * grad_row + lanes * grad_column, mask=mask, other=0.0).to(tl.float32)
    y = tl.load(y_ptr + row * y_row + lanes * y_column, mask=mask, other=0.0).to(tl.float32)
    result = y * (grad - tl.sum(grad * y, axis=0))
    tl.store(result_ptr + row * columns + lanes, result, mask=mask)


@triton.jit
def softmax_backward_stride_0(
    result_ptr, grad_ptr, y_ptr, columns, grad_row, grad_column, y_row, y_column, BLOCK: tl.constexpr
):
    """WRONG: the upstream gradient is taken to lie as the output does, also where it is expanded."""
    row = tl.program_id(0).to(tl.int64)
    lanes = tl.arange(0, BLOCK)
    mask = lanes < columns
    grad = tl.load(grad_ptr + row * y_row + lanes * y_column, mask=mask, other=0.0).to(tl.float32)
    y = tl.load(y_ptr + row * y_row + lanes * y_column, mask=mask, other=0.0).to(tl.float32)
    result = y * (grad - tl.sum(grad * y, axis=0))
    tl.store(result_ptr + row * columns + lanes, result, mask=mask)
