"""RMS norm without weight: rows divided by their root mean square. One program a row."""

import triton
import triton.language as tl


@triton.jit
def rmsnorm(out_ptr, x_ptr, columns, BLOCK: tl.constexpr):
    """x / sqrt(mean(x^2) + 1e-5)."""
    row = tl.program_id(0).to(tl.int64)
    lanes = tl.arange(0, BLOCK)
    mask = lanes < columns
    x = tl.load(x_ptr + row * columns + lanes, mask=mask, other=0.0).to(tl.float32)
    mean_square = tl.sum(x * x, axis=0) / columns
    out = x / tl.sqrt(mean_square + 1e-5)
    tl.store(out_ptr + row * columns + lanes, out, mask=mask)


@triton.jit
def rmsnorm_no_root(out_ptr, x_ptr, columns, BLOCK: tl.constexpr):
    """WRONG: the square root is missing."""
    row = tl.program_id(0).to(tl.int64)
    lanes = tl.arange(0, BLOCK)
    mask = lanes < columns
    x = tl.load(x_ptr + row * columns + lanes, mask=mask, other=0.0).to(tl.float32)
    mean_square = tl.sum(x * x, axis=0) / columns
    out = x / (mean_square + 1e-5)
    tl.store(out_ptr + row * columns + lanes, out, mask=mask)
