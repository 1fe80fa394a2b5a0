"""Symmetric quantisation with a scale for each row (int8) or group of a row (int4): one program each."""

import triton
import triton.language as tl


@triton.jit
def rounded(x):
    """To the nearest whole number, ties to even, of what is below 2^22: all finer bits fall off the sum."""
    return (x + 12582912.0) - 12582912.0


@triton.jit
def quantize_int8_rows(code_ptr, scale_ptr, x_ptr, columns, eps, BLOCK: tl.constexpr):
    """A row of zeros has the scale of eps; where that is 0 too, its codes are 0."""
    row = tl.program_id(0).to(tl.int64)
    lanes = tl.arange(0, BLOCK)
    mask = lanes < columns
    x = tl.load(x_ptr + row * columns + lanes, mask=mask, other=0.0).to(tl.float32)
    scale = tl.maximum(tl.max(tl.abs(x), axis=0), eps) / 127.0
    codes = tl.where(scale == 0.0, 0.0, rounded(x / scale))
    tl.store(code_ptr + row * columns + lanes, codes.to(tl.int8), mask=mask)
    tl.store(scale_ptr + row, scale)


@triton.jit
def quantize_int8_zero_row(code_ptr, scale_ptr, x_ptr, columns, eps, BLOCK: tl.constexpr):
    """WRONG: nothing keeps the scale above 0: a row of zeros is divided by 0."""
    row = tl.program_id(0).to(tl.int64)
    lanes = tl.arange(0, BLOCK)
    mask = lanes < columns
    x = tl.load(x_ptr + row * columns + lanes, mask=mask, other=0.0).to(tl.float32)
    scale = tl.max(tl.abs(x), axis=0) / 127.0
    codes = rounded(x / scale)
    tl.store(code_ptr + row * columns + lanes, codes.to(tl.int8), mask=mask)
    tl.store(scale_ptr + row, scale)


@triton.jit
def quantize_int4_groups(code_ptr, scale_ptr, x_ptr, size, eps, BLOCK: tl.constexpr):
    """Two codes a byte, the one of the even place in its lower half. Zeros have the scale of eps."""
    group = tl.program_id(0).to(tl.int64)
    lanes = tl.arange(0, BLOCK)
    mask = lanes < size // 2
    even = tl.load(x_ptr + group * size + 2 * lanes, mask=mask, other=0.0).to(tl.float32)
    odd = tl.load(x_ptr + group * size + 2 * lanes + 1, mask=mask, other=0.0).to(tl.float32)
    largest = tl.max(tl.maximum(tl.abs(even), tl.abs(odd)), axis=0)
    scale = tl.maximum(largest, eps) / 7.0
    lower = (rounded(even / scale) + 8.0).to(tl.int32)
    upper = (rounded(odd / scale) + 8.0).to(tl.int32)
    tl.store(code_ptr + group * (size // 2) + lanes, (lower | (upper << 4)).to(tl.uint8), mask=mask)
    tl.store(scale_ptr + group, scale)


@triton.jit
def quantize_int4_zero_group(code_ptr, scale_ptr, x_ptr, size, eps, BLOCK: tl.constexpr):
    """WRONG: nothing keeps the scale above 0: a group of zeros is divided by 0."""
    group = tl.program_id(0).to(tl.int64)
    lanes = tl.arange(0, BLOCK)
    mask = lanes < size // 2
    even = tl.load(x_ptr + group * size + 2 * lanes, mask=mask, other=0.0).to(tl.float32)
    odd = tl.load(x_ptr + group * size + 2 * lanes + 1, mask=mask, other=0.0).to(tl.float32)
    largest = tl.max(tl.maximum(tl.abs(even), tl.abs(odd)), axis=0)
    scale = largest / 7.0
    lower = (rounded(even / scale) + 8.0).to(tl.int32)
    upper = (rounded(odd / scale) + 8.0).to(tl.int32)
    tl.store(code_ptr + group * (size // 2) + lanes, (lower | (upper << 4)).to(tl.uint8), mask=mask)
    tl.store(scale_ptr + group, scale)
