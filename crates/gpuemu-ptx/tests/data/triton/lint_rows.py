"""The offset of a row in 32 and in 64 bits."""

import triton
import triton.language as tl


@triton.jit
def rows_int32(x, out, stride, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    offsets = tl.arange(0, BLOCK)
    mask = offsets < columns
    values = tl.load(x + row * stride + offsets, mask=mask)
    tl.store(out + row * stride + offsets, values * 2, mask=mask)


@triton.jit
def rows_int64(x, out, stride, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    offsets = tl.arange(0, BLOCK)
    mask = offsets < columns
    values = tl.load(x + row * stride + offsets, mask=mask)
    tl.store(out + row * stride + offsets, values * 2, mask=mask)
