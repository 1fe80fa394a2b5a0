"""Attention of one query to the first keys of its cache: one program a query head, BLOCK_N keys at a time."""

import triton
import triton.language as tl


@triton.jit
def decode_attention_rows(
    out_ptr,
    q_ptr,
    k_ptr,
    v_ptr,
    length_ptr,
    heads,
    group,
    keys,
    width,
    BLOCK_N: tl.constexpr,
    BLOCK_D: tl.constexpr,
):
    """Keys behind the length of the sequence are read by nobody, and weigh nothing."""
    place = tl.program_id(0).to(tl.int64)
    batch, head = place // (heads * group), place % (heads * group)
    cache = (batch * heads + head // group) * keys * width
    length = tl.load(length_ptr + batch)
    d = tl.arange(0, BLOCK_D)
    q = tl.load(q_ptr + place * width + d, d < width, other=0.0).to(tl.float32)
    scale = tl.div_rn(1.0, tl.sqrt_rn(width.to(tl.float32)))
    largest = -float("inf")
    total = 0.0
    acc = tl.zeros((BLOCK_D,), tl.float32)
    for start in range(0, length, BLOCK_N):
        n = start + tl.arange(0, BLOCK_N)
        tile = (n[:, None] < length) & (d[None, :] < width)
        k = tl.load(k_ptr + cache + n[:, None] * width + d[None, :], tile, other=0.0).to(tl.float32)
        v = tl.load(v_ptr + cache + n[:, None] * width + d[None, :], tile, other=0.0).to(tl.float32)
        scores = tl.sum(k * q[None, :], axis=1) * scale
        scores = tl.where(n < length, scores, -float("inf"))
        larger = tl.maximum(largest, tl.max(scores, axis=0))
        origin = tl.where(larger == -float("inf"), 0.0, larger)
        weights = tl.exp(scores - origin)
        rescale = tl.exp(largest - origin)
        total = total * rescale + tl.sum(weights, axis=0)
        acc = acc * rescale + tl.sum(weights[:, None] * v, axis=0)
        largest = larger
    tl.store(out_ptr + place * width + d, acc / total, d < width)


@triton.jit
def decode_attention_finite_sentinel(
    out_ptr,
    q_ptr,
    k_ptr,
    v_ptr,
    length_ptr,
    heads,
    group,
    keys,
    width,
    BLOCK_N: tl.constexpr,
    BLOCK_D: tl.constexpr,
):
    """WRONG: lanes behind the length have a score of -1e4, which is more than keys may have."""
    place = tl.program_id(0).to(tl.int64)
    batch, head = place // (heads * group), place % (heads * group)
    cache = (batch * heads + head // group) * keys * width
    length = tl.load(length_ptr + batch)
    d = tl.arange(0, BLOCK_D)
    q = tl.load(q_ptr + place * width + d, d < width, other=0.0).to(tl.float32)
    scale = tl.div_rn(1.0, tl.sqrt_rn(width.to(tl.float32)))
    largest = -float("inf")
    total = 0.0
    acc = tl.zeros((BLOCK_D,), tl.float32)
    for start in range(0, length, BLOCK_N):
        n = start + tl.arange(0, BLOCK_N)
        tile = (n[:, None] < length) & (d[None, :] < width)
        k = tl.load(k_ptr + cache + n[:, None] * width + d[None, :], tile, other=0.0).to(tl.float32)
        v = tl.load(v_ptr + cache + n[:, None] * width + d[None, :], tile, other=0.0).to(tl.float32)
        scores = tl.sum(k * q[None, :], axis=1) * scale
        scores = tl.where(n < length, scores, -1e4)
        larger = tl.maximum(largest, tl.max(scores, axis=0))
        origin = tl.where(larger == -float("inf"), 0.0, larger)
        weights = tl.exp(scores - origin)
        rescale = tl.exp(largest - origin)
        total = total * rescale + tl.sum(weights, axis=0)
        acc = acc * rescale + tl.sum(weights[:, None] * v, axis=0)
        largest = larger
    tl.store(out_ptr + place * width + d, acc / total, d < width)


@triton.jit
def decode_attention_first_length(
    out_ptr,
    q_ptr,
    k_ptr,
    v_ptr,
    length_ptr,
    heads,
    group,
    keys,
    width,
    BLOCK_N: tl.constexpr,
    BLOCK_D: tl.constexpr,
):
    """WRONG: every sequence has the length of the first one."""
    place = tl.program_id(0).to(tl.int64)
    batch, head = place // (heads * group), place % (heads * group)
    cache = (batch * heads + head // group) * keys * width
    length = tl.load(length_ptr)
    d = tl.arange(0, BLOCK_D)
    q = tl.load(q_ptr + place * width + d, d < width, other=0.0).to(tl.float32)
    scale = tl.div_rn(1.0, tl.sqrt_rn(width.to(tl.float32)))
    largest = -float("inf")
    total = 0.0
    acc = tl.zeros((BLOCK_D,), tl.float32)
    for start in range(0, length, BLOCK_N):
        n = start + tl.arange(0, BLOCK_N)
        tile = (n[:, None] < length) & (d[None, :] < width)
        k = tl.load(k_ptr + cache + n[:, None] * width + d[None, :], tile, other=0.0).to(tl.float32)
        v = tl.load(v_ptr + cache + n[:, None] * width + d[None, :], tile, other=0.0).to(tl.float32)
        scores = tl.sum(k * q[None, :], axis=1) * scale
        scores = tl.where(n < length, scores, -float("inf"))
        larger = tl.maximum(largest, tl.max(scores, axis=0))
        origin = tl.where(larger == -float("inf"), 0.0, larger)
        weights = tl.exp(scores - origin)
        rescale = tl.exp(largest - origin)
        total = total * rescale + tl.sum(weights, axis=0)
        acc = acc * rescale + tl.sum(weights[:, None] * v, axis=0)
        largest = larger
    tl.store(out_ptr + place * width + d, acc / total, d < width)
