"""Attention in float32, softmax(q k^T / sqrt(D)) v: one program a query, all keys at once. Any strides."""

import triton
import triton.language as tl


@triton.jit
def attention(
    out_ptr,
    q_ptr,
    k_ptr,
    v_ptr,
    keys,
    width,
    q_row,
    q_column,
    k_row,
    k_column,
    v_row,
    v_column,
    BLOCK_N: tl.constexpr,
    BLOCK_D: tl.constexpr,
):
    """Hold the scores of all keys at once; keys beyond the last have no weight."""
    query = tl.program_id(0).to(tl.int64)
    n = tl.arange(0, BLOCK_N)
    d = tl.arange(0, BLOCK_D)
    tile = (n[:, None] < keys) & (d[None, :] < width)
    q = tl.load(q_ptr + query * q_row + d * q_column, d < width, other=0.0).to(tl.float32)
    k = tl.load(k_ptr + n[:, None] * k_row + d[None, :] * k_column, tile, other=0.0).to(tl.float32)
    v = tl.load(v_ptr + n[:, None] * v_row + d[None, :] * v_column, tile, other=0.0).to(tl.float32)
    scale = tl.div_rn(1.0, tl.sqrt_rn(width.to(tl.float32)))
    scores = tl.sum(q[None, :] * k, axis=1) * scale
    scores = tl.where(n < keys, scores, -float("inf"))
    weights = tl.exp(scores - tl.max(scores, axis=0))
    out = tl.sum(weights[:, None] * v, axis=0) / tl.sum(weights, axis=0)
    tl.store(out_ptr + query * width + d, out, d < width)


@triton.jit
def attention_no_scale(
    out_ptr,
    q_ptr,
    k_ptr,
    v_ptr,
    keys,
    width,
    q_row,
    q_column,
    k_row,
    k_column,
    v_row,
    v_column,
    BLOCK_N: tl.constexpr,
    BLOCK_D: tl.constexpr,
):
    """WRONG: the scores are not divided by sqrt(D)."""
    query = tl.program_id(0).to(tl.int64)
    n = tl.arange(0, BLOCK_N)
    d = tl.arange(0, BLOCK_D)
    tile = (n[:, None] < keys) & (d[None, :] < width)
    q = tl.load(q_ptr + query * q_row + d * q_column, d < width, other=0.0).to(tl.float32)
    k = tl.load(k_ptr + n[:, None] * k_row + d[None, :] * k_column, tile, other=0.0).to(tl.float32)
    v = tl.load(v_ptr + n[:, None] * v_row + d[None, :] * v_column, tile, other=0.0).to(tl.float32)
    scores = tl.sum(q[None, :] * k, axis=1)
    scores = tl.where(n < keys, scores, -float("inf"))
    weights = tl.exp(scores - tl.max(scores, axis=0))
    out = tl.sum(weights[:, None] * v, axis=0) / tl.sum(weights, axis=0)
    tl.store(out_ptr + query * width + d, out, d < width)
