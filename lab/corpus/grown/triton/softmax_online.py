"""Softmax along the last dim, BLOCK elements at a time: maximum and sum in one pass, results in a second."""

import triton
import triton.language as tl


@triton.jit
def softmax_online(out_ptr, x_ptr, columns, BLOCK: tl.constexpr):
    """Measure a row that has shown nothing but minus infinity yet from 0."""
    row = tl.program_id(0).to(tl.int64)
    largest = -float("inf")
    total = 0.0
    for start in range(0, columns, BLOCK):
        lanes = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * columns + lanes, mask=lanes < columns, other=-float("inf")).to(tl.float32)
        larger = tl.maximum(largest, tl.max(x, axis=0))
        origin = tl.where(larger == -float("inf"), 0.0, larger)
        total = total * tl.exp(largest - origin) + tl.sum(tl.exp(x - origin), axis=0)
        largest = larger
    for start in range(0, columns, BLOCK):
        lanes = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * columns + lanes, mask=lanes < columns, other=-float("inf")).to(tl.float32)
        tl.store(out_ptr + row * columns + lanes, tl.exp(x - largest) / total, mask=lanes < columns)


@triton.jit
def softmax_online_infinite(out_ptr, x_ptr, columns, BLOCK: tl.constexpr):
    """WRONG: a first block of minus infinity is measured from itself, which is NaN, and so is the sum."""
    row = tl.program_id(0).to(tl.int64)
    largest = -float("inf")
    total = 0.0
    for start in range(0, columns, BLOCK):
        lanes = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * columns + lanes, mask=lanes < columns, other=-float("inf")).to(tl.float32)
        larger = tl.maximum(largest, tl.max(x, axis=0))
        total = total * tl.exp(largest - larger) + tl.sum(tl.exp(x - larger), axis=0)
        largest = larger
    for start in range(0, columns, BLOCK):
        lanes = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * columns + lanes, mask=lanes < columns, other=-float("inf")).to(tl.float32)
        tl.store(out_ptr + row * columns + lanes, tl.exp(x - largest) / total, mask=lanes < columns)
