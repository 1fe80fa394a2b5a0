"""Rectified linear unit. Flat: every program has BLOCK neighbouring elements."""

import triton
import triton.language as tl


@triton.jit
def relu(out_ptr, x_ptr, count, BLOCK: tl.constexpr):
    """max(x, 0); NaN stays NaN."""
    lanes = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = lanes < count
    x = tl.load(x_ptr + lanes, mask=mask).to(tl.float32)
    tl.store(out_ptr + lanes, tl.maximum(x, 0.0, propagate_nan=tl.PropagateNan.ALL), mask=mask)
