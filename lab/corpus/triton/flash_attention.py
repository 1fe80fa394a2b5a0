"""Flash attention in float32: BLOCK_M queries a program, an online softmax over BLOCK_N keys at a time.

Inputs of any strides.
"""

import triton
import triton.language as tl


@triton.jit
def flash_attention(
    out_ptr,
    q_ptr,
    k_ptr,
    v_ptr,
    queries,
    keys,
    width,
    q_row,
    q_column,
    k_row,
    k_column,
    v_row,
    v_column,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_D: tl.constexpr,
):
    """Rescale what was added up whenever the largest score so far moves."""
    m = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    d = tl.arange(0, BLOCK_D)
    rows = (m[:, None] < queries) & (d[None, :] < width)
    q = tl.load(q_ptr + m[:, None] * q_row + d[None, :] * q_column, rows, other=0.0).to(tl.float32)
    scale = tl.div_rn(1.0, tl.sqrt_rn(width.to(tl.float32)))
    largest = tl.full((BLOCK_M,), -float("inf"), tl.float32)
    total = tl.zeros((BLOCK_M,), tl.float32)
    acc = tl.zeros((BLOCK_M, BLOCK_D), tl.float32)
    for start in range(0, keys, BLOCK_N):
        n = start + tl.arange(0, BLOCK_N)
        tile = (n[:, None] < keys) & (d[None, :] < width)
        k = tl.load(k_ptr + n[:, None] * k_row + d[None, :] * k_column, tile, other=0.0).to(tl.float32)
        v = tl.load(v_ptr + n[:, None] * v_row + d[None, :] * v_column, tile, other=0.0).to(tl.float32)
        scores = tl.dot(q, tl.trans(k), input_precision="ieee") * scale
        scores = tl.where(n[None, :] < keys, scores, -float("inf"))
        larger = tl.maximum(largest, tl.max(scores, axis=1))
        # Minus infinity less itself is NaN: a row that has seen nothing finite yet is measured from 0.
        origin = tl.where(larger == -float("inf"), 0.0, larger)
        weights = tl.exp(scores - origin[:, None])
        rescale = tl.exp(largest - origin)
        total = total * rescale + tl.sum(weights, axis=1)
        added = tl.dot(weights, v, input_precision="ieee")
        acc = acc * rescale[:, None] + added
        largest = larger
    tl.store(out_ptr + m[:, None].to(tl.int64) * width + d[None, :], acc / total[:, None], rows)


@triton.jit
def flash_no_rescale(
    out_ptr,
    q_ptr,
    k_ptr,
    v_ptr,
    queries,
    keys,
    width,
    q_row,
    q_column,
    k_row,
    k_column,
    v_row,
    v_column,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_D: tl.constexpr,
):
    """WRONG: the accumulator keeps the scale of the old maximum."""
    m = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    d = tl.arange(0, BLOCK_D)
    rows = (m[:, None] < queries) & (d[None, :] < width)
    q = tl.load(q_ptr + m[:, None] * q_row + d[None, :] * q_column, rows, other=0.0).to(tl.float32)
    scale = tl.div_rn(1.0, tl.sqrt_rn(width.to(tl.float32)))
    largest = tl.full((BLOCK_M,), -float("inf"), tl.float32)
    total = tl.zeros((BLOCK_M,), tl.float32)
    acc = tl.zeros((BLOCK_M, BLOCK_D), tl.float32)
    for start in range(0, keys, BLOCK_N):
        n = start + tl.arange(0, BLOCK_N)
        tile = (n[:, None] < keys) & (d[None, :] < width)
        k = tl.load(k_ptr + n[:, None] * k_row + d[None, :] * k_column, tile, other=0.0).to(tl.float32)
        v = tl.load(v_ptr + n[:, None] * v_row + d[None, :] * v_column, tile, other=0.0).to(tl.float32)
        scores = tl.dot(q, tl.trans(k), input_precision="ieee") * scale
        scores = tl.where(n[None, :] < keys, scores, -float("inf"))
        larger = tl.maximum(largest, tl.max(scores, axis=1))
        # Minus infinity less itself is NaN: a row that has seen nothing finite yet is measured from 0.
        origin = tl.where(larger == -float("inf"), 0.0, larger)
        weights = tl.exp(scores - origin[:, None])
        rescale = tl.exp(largest - origin)
        total = total * rescale + tl.sum(weights, axis=1)
        added = tl.dot(weights, v, input_precision="ieee")
        acc = acc + added
        largest = larger
    tl.store(out_ptr + m[:, None].to(tl.int64) * width + d[None, :], acc / total[:, None], rows)
