"""Causal attention with an online softmax: 16 queries of a head a program, BLOCK_N keys at a time.

Batches, groups of query heads and tensors of any strides. With a window, a query sees that many keys at most.
"""

import triton
import triton.language as tl


@triton.jit
def attention_causal(
    out_ptr,
    q_ptr,
    k_ptr,
    v_ptr,
    heads,
    group,
    queries,
    keys,
    width,
    window,
    q_batch,
    q_head,
    q_row,
    q_column,
    k_batch,
    k_head,
    k_row,
    k_column,
    v_batch,
    v_head,
    v_row,
    v_column,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_D: tl.constexpr,
):
    """Measure a query that has seen no key yet from 0."""
    batch = tl.program_id(1) // heads
    head = tl.program_id(1) % heads
    m = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    d = tl.arange(0, BLOCK_D)
    rows = (m[:, None] < queries) & (d[None, :] < width)
    q_start = q_ptr + batch * q_batch + head * q_head
    k_start = k_ptr + batch * k_batch + head // group * k_head
    v_start = v_ptr + batch * v_batch + head // group * v_head
    q = tl.load(q_start + m[:, None] * q_row + d[None, :] * q_column, rows, other=0.0).to(tl.float32)
    scale = tl.div_rn(1.0, tl.sqrt_rn(width.to(tl.float32)))
    largest = tl.full((BLOCK_M,), -float("inf"), tl.float32)
    total = tl.zeros((BLOCK_M,), tl.float32)
    acc = tl.zeros((BLOCK_M, BLOCK_D), tl.float32)
    for start in range(0, keys, BLOCK_N):
        n = start + tl.arange(0, BLOCK_N)
        tile = (n[:, None] < keys) & (d[None, :] < width)
        k = tl.load(k_start + n[:, None] * k_row + d[None, :] * k_column, tile, other=0.0).to(tl.float32)
        v = tl.load(v_start + n[:, None] * v_row + d[None, :] * v_column, tile, other=0.0).to(tl.float32)
        distance = m[:, None] - n[None, :]
        visible = (distance >= 0) & ((window == 0) | (distance < window)) & (n[None, :] < keys)
        scores = tl.dot(q, tl.trans(k), input_precision="ieee") * scale
        scores = tl.where(visible, scores, -float("inf"))
        larger = tl.maximum(largest, tl.max(scores, axis=1))
        origin = tl.where(larger == -float("inf"), 0.0, larger)
        weights = tl.exp(scores - origin[:, None])
        rescale = tl.exp(largest - origin)
        total = total * rescale + tl.sum(weights, axis=1)
        acc = acc * rescale[:, None] + tl.dot(weights, v, input_precision="ieee")
        largest = larger
    first = tl.program_id(1).to(tl.int64) * queries * width
    tl.store(out_ptr + first + m[:, None] * width + d[None, :], acc / total[:, None], rows)


@triton.jit
def attention_causal_infinite(
    out_ptr,
    q_ptr,
    k_ptr,
    v_ptr,
    heads,
    group,
    queries,
    keys,
    width,
    window,
    q_batch,
    q_head,
    q_row,
    q_column,
    k_batch,
    k_head,
    k_row,
    k_column,
    v_batch,
    v_head,
    v_row,
    v_column,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_D: tl.constexpr,
):
    """WRONG: a first block without a visible key is measured from minus infinity, which is NaN."""
    batch = tl.program_id(1) // heads
    head = tl.program_id(1) % heads
    m = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    d = tl.arange(0, BLOCK_D)
    rows = (m[:, None] < queries) & (d[None, :] < width)
    q_start = q_ptr + batch * q_batch + head * q_head
    k_start = k_ptr + batch * k_batch + head // group * k_head
    v_start = v_ptr + batch * v_batch + head // group * v_head
    q = tl.load(q_start + m[:, None] * q_row + d[None, :] * q_column, rows, other=0.0).to(tl.float32)
    scale = tl.div_rn(1.0, tl.sqrt_rn(width.to(tl.float32)))
    largest = tl.full((BLOCK_M,), -float("inf"), tl.float32)
    total = tl.zeros((BLOCK_M,), tl.float32)
    acc = tl.zeros((BLOCK_M, BLOCK_D), tl.float32)
    for start in range(0, keys, BLOCK_N):
        n = start + tl.arange(0, BLOCK_N)
        tile = (n[:, None] < keys) & (d[None, :] < width)
        k = tl.load(k_start + n[:, None] * k_row + d[None, :] * k_column, tile, other=0.0).to(tl.float32)
        v = tl.load(v_start + n[:, None] * v_row + d[None, :] * v_column, tile, other=0.0).to(tl.float32)
        distance = m[:, None] - n[None, :]
        visible = (distance >= 0) & ((window == 0) | (distance < window)) & (n[None, :] < keys)
        scores = tl.dot(q, tl.trans(k), input_precision="ieee") * scale
        scores = tl.where(visible, scores, -float("inf"))
        larger = tl.maximum(largest, tl.max(scores, axis=1))
        weights = tl.exp(scores - larger[:, None])
        rescale = tl.exp(largest - larger)
        total = total * rescale + tl.sum(weights, axis=1)
        acc = acc * rescale[:, None] + tl.dot(weights, v, input_precision="ieee")
        largest = larger
    first = tl.program_id(1).to(tl.int64) * queries * width
    tl.store(out_ptr + first + m[:, None] * width + d[None, :], acc / total[:, None], rows)


@triton.jit
def attention_finite_sentinel(
    out_ptr,
    q_ptr,
    k_ptr,
    v_ptr,
    heads,
    group,
    queries,
    keys,
    width,
    window,
    q_batch,
    q_head,
    q_row,
    q_column,
    k_batch,
    k_head,
    k_row,
    k_column,
    v_batch,
    v_head,
    v_row,
    v_column,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_D: tl.constexpr,
):
    """WRONG: hidden keys have a score of -1e4, which is more than visible ones may have."""
    batch = tl.program_id(1) // heads
    head = tl.program_id(1) % heads
    m = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    d = tl.arange(0, BLOCK_D)
    rows = (m[:, None] < queries) & (d[None, :] < width)
    q_start = q_ptr + batch * q_batch + head * q_head
    k_start = k_ptr + batch * k_batch + head // group * k_head
    v_start = v_ptr + batch * v_batch + head // group * v_head
    q = tl.load(q_start + m[:, None] * q_row + d[None, :] * q_column, rows, other=0.0).to(tl.float32)
    scale = tl.div_rn(1.0, tl.sqrt_rn(width.to(tl.float32)))
    largest = tl.full((BLOCK_M,), -float("inf"), tl.float32)
    total = tl.zeros((BLOCK_M,), tl.float32)
    acc = tl.zeros((BLOCK_M, BLOCK_D), tl.float32)
    for start in range(0, keys, BLOCK_N):
        n = start + tl.arange(0, BLOCK_N)
        tile = (n[:, None] < keys) & (d[None, :] < width)
        k = tl.load(k_start + n[:, None] * k_row + d[None, :] * k_column, tile, other=0.0).to(tl.float32)
        v = tl.load(v_start + n[:, None] * v_row + d[None, :] * v_column, tile, other=0.0).to(tl.float32)
        distance = m[:, None] - n[None, :]
        visible = (distance >= 0) & ((window == 0) | (distance < window)) & (n[None, :] < keys)
        scores = tl.dot(q, tl.trans(k), input_precision="ieee") * scale
        scores = tl.where(visible, scores, -1e4)
        larger = tl.maximum(largest, tl.max(scores, axis=1))
        origin = tl.where(larger == -float("inf"), 0.0, larger)
        weights = tl.exp(scores - origin[:, None])
        rescale = tl.exp(largest - origin)
        total = total * rescale + tl.sum(weights, axis=1)
        acc = acc * rescale[:, None] + tl.dot(weights, v, input_precision="ieee")
        largest = larger
    first = tl.program_id(1).to(tl.int64) * queries * width
    tl.store(out_ptr + first + m[:, None] * width + d[None, :], acc / total[:, None], rows)


@triton.jit
def attention_first_batch(
    out_ptr,
    q_ptr,
    k_ptr,
    v_ptr,
    heads,
    group,
    queries,
    keys,
    width,
    window,
    q_batch,
    q_head,
    q_row,
    q_column,
    k_batch,
    k_head,
    k_row,
    k_column,
    v_batch,
    v_head,
    v_row,
    v_column,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_D: tl.constexpr,
):
    """WRONG: every batch reads keys and values of the first one."""
    batch = tl.program_id(1) // heads
    head = tl.program_id(1) % heads
    m = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    d = tl.arange(0, BLOCK_D)
    rows = (m[:, None] < queries) & (d[None, :] < width)
    q_start = q_ptr + batch * q_batch + head * q_head
    k_start = k_ptr + head // group * k_head
    v_start = v_ptr + head // group * v_head
    q = tl.load(q_start + m[:, None] * q_row + d[None, :] * q_column, rows, other=0.0).to(tl.float32)
    scale = tl.div_rn(1.0, tl.sqrt_rn(width.to(tl.float32)))
    largest = tl.full((BLOCK_M,), -float("inf"), tl.float32)
    total = tl.zeros((BLOCK_M,), tl.float32)
    acc = tl.zeros((BLOCK_M, BLOCK_D), tl.float32)
    for start in range(0, keys, BLOCK_N):
        n = start + tl.arange(0, BLOCK_N)
        tile = (n[:, None] < keys) & (d[None, :] < width)
        k = tl.load(k_start + n[:, None] * k_row + d[None, :] * k_column, tile, other=0.0).to(tl.float32)
        v = tl.load(v_start + n[:, None] * v_row + d[None, :] * v_column, tile, other=0.0).to(tl.float32)
        distance = m[:, None] - n[None, :]
        visible = (distance >= 0) & ((window == 0) | (distance < window)) & (n[None, :] < keys)
        scores = tl.dot(q, tl.trans(k), input_precision="ieee") * scale
        scores = tl.where(visible, scores, -float("inf"))
        larger = tl.maximum(largest, tl.max(scores, axis=1))
        origin = tl.where(larger == -float("inf"), 0.0, larger)
        weights = tl.exp(scores - origin[:, None])
        rescale = tl.exp(largest - origin)
        total = total * rescale + tl.sum(weights, axis=1)
        acc = acc * rescale[:, None] + tl.dot(weights, v, input_precision="ieee")
        largest = larger
    first = tl.program_id(1).to(tl.int64) * queries * width
    tl.store(out_ptr + first + m[:, None] * width + d[None, :], acc / total[:, None], rows)


@triton.jit
def attention_total_not_rescaled(
    out_ptr,
    q_ptr,
    k_ptr,
    v_ptr,
    heads,
    group,
    queries,
    keys,
    width,
    window,
    q_batch,
    q_head,
    q_row,
    q_column,
    k_batch,
    k_head,
    k_row,
    k_column,
    v_batch,
    v_head,
    v_row,
    v_column,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_D: tl.constexpr,
):
    """WRONG: the sum of weights keeps the scale of the old maximum."""
    batch = tl.program_id(1) // heads
    head = tl.program_id(1) % heads
    m = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    d = tl.arange(0, BLOCK_D)
    rows = (m[:, None] < queries) & (d[None, :] < width)
    q_start = q_ptr + batch * q_batch + head * q_head
    k_start = k_ptr + batch * k_batch + head // group * k_head
    v_start = v_ptr + batch * v_batch + head // group * v_head
    q = tl.load(q_start + m[:, None] * q_row + d[None, :] * q_column, rows, other=0.0).to(tl.float32)
    scale = tl.div_rn(1.0, tl.sqrt_rn(width.to(tl.float32)))
    largest = tl.full((BLOCK_M,), -float("inf"), tl.float32)
    total = tl.zeros((BLOCK_M,), tl.float32)
    acc = tl.zeros((BLOCK_M, BLOCK_D), tl.float32)
    for start in range(0, keys, BLOCK_N):
        n = start + tl.arange(0, BLOCK_N)
        tile = (n[:, None] < keys) & (d[None, :] < width)
        k = tl.load(k_start + n[:, None] * k_row + d[None, :] * k_column, tile, other=0.0).to(tl.float32)
        v = tl.load(v_start + n[:, None] * v_row + d[None, :] * v_column, tile, other=0.0).to(tl.float32)
        distance = m[:, None] - n[None, :]
        visible = (distance >= 0) & ((window == 0) | (distance < window)) & (n[None, :] < keys)
        scores = tl.dot(q, tl.trans(k), input_precision="ieee") * scale
        scores = tl.where(visible, scores, -float("inf"))
        larger = tl.maximum(largest, tl.max(scores, axis=1))
        origin = tl.where(larger == -float("inf"), 0.0, larger)
        weights = tl.exp(scores - origin[:, None])
        rescale = tl.exp(largest - origin)
        total = total + tl.sum(weights, axis=1)
        acc = acc * rescale[:, None] + tl.dot(weights, v, input_precision="ieee")
        largest = larger
    first = tl.program_id(1).to(tl.int64) * queries * width
    tl.store(out_ptr + first + m[:, None] * width + d[None, :], acc / total[:, None], rows)
