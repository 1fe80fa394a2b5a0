"""RMS norm by a few programs that stay: each has a run of rows."""

import triton
import triton.language as tl


@triton.jit
def rmsnorm_chunks(out_ptr, x_ptr, rows, columns, eps, BLOCK: tl.constexpr):
    """Runs are as long as all rows need; the last one ends where the rows do."""
    chunk = tl.cdiv(rows, tl.num_programs(0))
    first = tl.program_id(0) * chunk
    lanes = tl.arange(0, BLOCK)
    mask = lanes < columns
    for row in range(first, tl.minimum(first + chunk, rows)):
        start = row.to(tl.int64) * columns
        x = tl.load(x_ptr + start + lanes, mask=mask, other=0.0).to(tl.float32)
        mean_square = tl.sum(x * x, axis=0) / columns
        tl.store(out_ptr + start + lanes, x / tl.sqrt(mean_square + eps), mask=mask)


@triton.jit
def rmsnorm_rows_left_over(out_ptr, x_ptr, rows, columns, eps, BLOCK: tl.constexpr):
    """WRONG: the length of a run is rounded down, and the rows that are left over are nobody's."""
    chunk = rows // tl.num_programs(0)
    first = tl.program_id(0) * chunk
    lanes = tl.arange(0, BLOCK)
    mask = lanes < columns
    for row in range(first, first + chunk):
        start = row.to(tl.int64) * columns
        x = tl.load(x_ptr + start + lanes, mask=mask, other=0.0).to(tl.float32)
        mean_square = tl.sum(x * x, axis=0) / columns
        tl.store(out_ptr + start + lanes, x / tl.sqrt(mean_square + eps), mask=mask)
