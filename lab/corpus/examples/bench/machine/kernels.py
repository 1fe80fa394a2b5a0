"""The kernels of the benchmarks: compiled for the PTX machine, and as they are for Triton's interpreter."""

import triton
import triton.language as tl


@triton.jit
def add(x_ptr, y_ptr, out_ptr, count, BLOCK: tl.constexpr):
    """Add two vectors."""
    lanes = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = lanes < count
    tl.store(
        out_ptr + lanes, tl.load(x_ptr + lanes, mask=mask) + tl.load(y_ptr + lanes, mask=mask), mask=mask
    )


@triton.jit
def softmax(out_ptr, x_ptr, columns, BLOCK: tl.constexpr):
    """Softmax along the last dim, a program a row."""
    row = tl.program_id(0)
    lanes = tl.arange(0, BLOCK)
    mask = lanes < columns
    x = tl.load(x_ptr + row * columns + lanes, mask=mask, other=-float("inf"))
    weights = tl.exp(x - tl.max(x, axis=0))
    tl.store(out_ptr + row * columns + lanes, weights / tl.sum(weights, axis=0), mask=mask)


@triton.jit
def matmul(a_ptr, b_ptr, c_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """Multiply two row-major matrices, a program a tile."""
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    columns = tl.program_id(1) * BN + tl.arange(0, BN)
    inner = tl.arange(0, BK)
    total = tl.zeros((BM, BN), dtype=tl.float32)
    for start in range(0, K, BK):
        a_mask = (rows[:, None] < M) & (start + inner[None, :] < K)
        b_mask = (start + inner[:, None] < K) & (columns[None, :] < N)
        a = tl.load(a_ptr + rows[:, None] * K + start + inner[None, :], mask=a_mask, other=0.0)
        b = tl.load(b_ptr + (start + inner[:, None]) * N + columns[None, :], mask=b_mask, other=0.0)
        total = tl.dot(a, b, total)
    mask = (rows[:, None] < M) & (columns[None, :] < N)
    tl.store(c_ptr + rows[:, None] * N + columns[None, :], total.to(tl.float16), mask=mask)


@triton.jit
def flash_attention(
    q_ptr, k_ptr, v_ptr, out_ptr, length, scale, BM: tl.constexpr, BN: tl.constexpr, D: tl.constexpr
):
    """Attention with an online softmax, a program a tile of queries of one head."""
    head = tl.program_id(1) * length * D
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    lanes = tl.arange(0, D)
    q = tl.load(q_ptr + head + rows[:, None] * D + lanes[None, :], mask=rows[:, None] < length, other=0.0)
    largest = tl.full((BM,), -float("inf"), dtype=tl.float32)
    weight = tl.zeros((BM,), dtype=tl.float32)
    total = tl.zeros((BM, D), dtype=tl.float32)
    for start in range(0, length, BN):
        keys = start + tl.arange(0, BN)
        mask = keys[:, None] < length
        k = tl.load(k_ptr + head + keys[:, None] * D + lanes[None, :], mask=mask, other=0.0)
        v = tl.load(v_ptr + head + keys[:, None] * D + lanes[None, :], mask=mask, other=0.0)
        scores = tl.dot(q, tl.trans(k)) * scale
        scores = tl.where(keys[None, :] < length, scores, -float("inf"))
        above = tl.maximum(largest, tl.max(scores, axis=1))
        kept = tl.exp(largest - above)
        weights = tl.exp(scores - above[:, None])
        weight = weight * kept + tl.sum(weights, axis=1)
        total = tl.dot(weights.to(tl.float16), v, total * kept[:, None])
        largest = above
    out = total / weight[:, None]
    tl.store(
        out_ptr + head + rows[:, None] * D + lanes[None, :], out.to(tl.float16), mask=rows[:, None] < length
    )
