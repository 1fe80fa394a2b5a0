"""Sums and means along the last dim: one program a row, BLOCK elements at a time, a sum for each lane."""

import triton
import triton.language as tl


@triton.jit
def sum_blocks(out_ptr, x_ptr, columns, BLOCK: tl.constexpr):
    """Sums of lanes are in float32, whatever the dtype is."""
    row = tl.program_id(0).to(tl.int64)
    total = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, columns, BLOCK):
        lanes = start + tl.arange(0, BLOCK)
        total += tl.load(x_ptr + row * columns + lanes, mask=lanes < columns, other=0.0).to(tl.float32)
    tl.store(out_ptr + row, tl.sum(total, axis=0))


@triton.jit
def sum_in_bfloat16(out_ptr, x_ptr, columns, BLOCK: tl.constexpr):
    """WRONG: sums of lanes are rounded to bfloat16 after every addition."""
    row = tl.program_id(0).to(tl.int64)
    total = tl.zeros((BLOCK,), tl.bfloat16)
    for start in range(0, columns, BLOCK):
        lanes = start + tl.arange(0, BLOCK)
        total += tl.load(x_ptr + row * columns + lanes, mask=lanes < columns, other=0.0)
    tl.store(out_ptr + row, tl.sum(total.to(tl.float32), axis=0))


@triton.jit
def mean_blocks(out_ptr, x_ptr, columns, BLOCK: tl.constexpr):
    """Sums of lanes are in float32, whatever the dtype is."""
    row = tl.program_id(0).to(tl.int64)
    total = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, columns, BLOCK):
        lanes = start + tl.arange(0, BLOCK)
        total += tl.load(x_ptr + row * columns + lanes, mask=lanes < columns, other=0.0).to(tl.float32)
    tl.store(out_ptr + row, tl.sum(total, axis=0) / columns)


@triton.jit
def mean_in_bfloat16(out_ptr, x_ptr, columns, BLOCK: tl.constexpr):
    """WRONG: sums of lanes are rounded to bfloat16 after every addition."""
    row = tl.program_id(0).to(tl.int64)
    total = tl.zeros((BLOCK,), tl.bfloat16)
    for start in range(0, columns, BLOCK):
        lanes = start + tl.arange(0, BLOCK)
        total += tl.load(x_ptr + row * columns + lanes, mask=lanes < columns, other=0.0)
    tl.store(out_ptr + row, tl.sum(total.to(tl.float32), axis=0) / columns)
