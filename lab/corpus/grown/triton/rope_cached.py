"""Rotary embedding with given cosines and sines, halves as pairs: one program a batch, head and position."""

import triton
import triton.language as tl


@triton.jit
def rope_halves(out_ptr, q_ptr, cos_ptr, sin_ptr, half, BLOCK: tl.constexpr):
    """Heads of a batch share the angles of its positions."""
    position, head, batch = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    positions, heads = tl.num_programs(0), tl.num_programs(1)
    start = ((batch * heads + head).to(tl.int64) * positions + position) * 2 * half
    angle = (batch.to(tl.int64) * positions + position) * 2 * half
    lanes = tl.arange(0, BLOCK)
    mask = lanes < half
    first = tl.load(q_ptr + start + lanes, mask=mask).to(tl.float32)
    second = tl.load(q_ptr + start + half + lanes, mask=mask).to(tl.float32)
    first_cos = tl.load(cos_ptr + angle + lanes, mask=mask).to(tl.float32)
    first_sin = tl.load(sin_ptr + angle + lanes, mask=mask).to(tl.float32)
    second_cos = tl.load(cos_ptr + angle + half + lanes, mask=mask).to(tl.float32)
    second_sin = tl.load(sin_ptr + angle + half + lanes, mask=mask).to(tl.float32)
    rotated = first * first_cos - second * first_sin
    tl.store(out_ptr + start + lanes, rotated, mask=mask)
    tl.store(out_ptr + start + half + lanes, second * second_cos + first * second_sin, mask=mask)


@triton.jit
def rope_first_batch(out_ptr, q_ptr, cos_ptr, sin_ptr, half, BLOCK: tl.constexpr):
    """WRONG: every batch has the angles of the first one."""
    position, head, batch = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    positions, heads = tl.num_programs(0), tl.num_programs(1)
    start = ((batch * heads + head).to(tl.int64) * positions + position) * 2 * half
    angle = position.to(tl.int64) * 2 * half
    lanes = tl.arange(0, BLOCK)
    mask = lanes < half
    first = tl.load(q_ptr + start + lanes, mask=mask).to(tl.float32)
    second = tl.load(q_ptr + start + half + lanes, mask=mask).to(tl.float32)
    first_cos = tl.load(cos_ptr + angle + lanes, mask=mask).to(tl.float32)
    first_sin = tl.load(sin_ptr + angle + lanes, mask=mask).to(tl.float32)
    second_cos = tl.load(cos_ptr + angle + half + lanes, mask=mask).to(tl.float32)
    second_sin = tl.load(sin_ptr + angle + half + lanes, mask=mask).to(tl.float32)
    rotated = first * first_cos - second * first_sin
    tl.store(out_ptr + start + lanes, rotated, mask=mask)
    tl.store(out_ptr + start + half + lanes, second * second_cos + first * second_sin, mask=mask)


@triton.jit
def rope_rotated_operand(out_ptr, q_ptr, cos_ptr, sin_ptr, half, BLOCK: tl.constexpr):
    """WRONG: the second half is turned with the first half as it is after its own turn."""
    position, head, batch = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    positions, heads = tl.num_programs(0), tl.num_programs(1)
    start = ((batch * heads + head).to(tl.int64) * positions + position) * 2 * half
    angle = (batch.to(tl.int64) * positions + position) * 2 * half
    lanes = tl.arange(0, BLOCK)
    mask = lanes < half
    first = tl.load(q_ptr + start + lanes, mask=mask).to(tl.float32)
    second = tl.load(q_ptr + start + half + lanes, mask=mask).to(tl.float32)
    first_cos = tl.load(cos_ptr + angle + lanes, mask=mask).to(tl.float32)
    first_sin = tl.load(sin_ptr + angle + lanes, mask=mask).to(tl.float32)
    second_cos = tl.load(cos_ptr + angle + half + lanes, mask=mask).to(tl.float32)
    second_sin = tl.load(sin_ptr + angle + half + lanes, mask=mask).to(tl.float32)
    rotated = first * first_cos - second * first_sin
    tl.store(out_ptr + start + lanes, rotated, mask=mask)
    tl.store(out_ptr + start + half + lanes, second * second_cos + rotated * second_sin, mask=mask)
