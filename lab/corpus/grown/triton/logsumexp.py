"""Logarithm of the sum of exponentials of rows: a maximum and a sum for each lane, merged at the end."""

import triton
import triton.language as tl


@triton.jit
def origin_of(largest):
    """Measure from 0 where the largest element is an infinity: less itself that would be NaN."""
    return tl.where(tl.abs(largest) == float("inf"), 0.0, largest)


@triton.jit
def logsumexp_online(out_ptr, x_ptr, columns, BLOCK: tl.constexpr):
    """Lanes that have seen nothing but minus infinity, or nothing at all, hold a sum of 0."""
    row = tl.program_id(0).to(tl.int64)
    largest = tl.full((BLOCK,), -float("inf"), tl.float32)
    total = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, columns, BLOCK):
        lanes = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * columns + lanes, mask=lanes < columns, other=-float("inf")).to(tl.float32)
        larger = tl.maximum(largest, x)
        origin = origin_of(larger)
        total = total * tl.exp(largest - origin) + tl.exp(x - origin)
        largest = larger
    origin = origin_of(tl.max(largest, axis=0))
    tl.store(out_ptr + row, origin + tl.log(tl.sum(total * tl.exp(largest - origin), axis=0)))


@triton.jit
def logsumexp_online_infinite(out_ptr, x_ptr, columns, BLOCK: tl.constexpr):
    """WRONG: a lane that has seen nothing but minus infinity is measured from it, which is NaN."""
    row = tl.program_id(0).to(tl.int64)
    largest = tl.full((BLOCK,), -float("inf"), tl.float32)
    total = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, columns, BLOCK):
        lanes = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * columns + lanes, mask=lanes < columns, other=-float("inf")).to(tl.float32)
        larger = tl.maximum(largest, x)
        total = total * tl.exp(largest - larger) + tl.exp(x - larger)
        largest = larger
    origin = origin_of(tl.max(largest, axis=0))
    tl.store(out_ptr + row, origin + tl.log(tl.sum(total * tl.exp(largest - origin), axis=0)))


@triton.jit
def logsumexp_no_rescale(out_ptr, x_ptr, columns, BLOCK: tl.constexpr):
    """WRONG: the sum of a lane keeps the scale of its old maximum."""
    row = tl.program_id(0).to(tl.int64)
    largest = tl.full((BLOCK,), -float("inf"), tl.float32)
    total = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, columns, BLOCK):
        lanes = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * columns + lanes, mask=lanes < columns, other=-float("inf")).to(tl.float32)
        larger = tl.maximum(largest, x)
        origin = origin_of(larger)
        total = total + tl.exp(x - origin)
        largest = larger
    origin = origin_of(tl.max(largest, axis=0))
    tl.store(out_ptr + row, origin + tl.log(tl.sum(total * tl.exp(largest - origin), axis=0)))
