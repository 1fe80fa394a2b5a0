"""A bias added to every row. Flat: every program has BLOCK neighbouring elements."""

import triton
import triton.language as tl


@triton.jit
def bias_add_flat(out_ptr, x_ptr, bias_ptr, count, columns, BLOCK: tl.constexpr):
    """The last program stores as far as there are elements."""
    lanes = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = lanes < count
    x = tl.load(x_ptr + lanes, mask=mask, other=0.0).to(tl.float32)
    bias = tl.load(bias_ptr + lanes % columns, mask=mask, other=0.0).to(tl.float32)
    tl.store(out_ptr + lanes, x + bias, mask=mask)


@triton.jit
def bias_add_unmasked_store(out_ptr, x_ptr, bias_ptr, count, columns, BLOCK: tl.constexpr):
    """WRONG: the last program stores a whole block, beyond the end of the output."""
    lanes = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = lanes < count
    x = tl.load(x_ptr + lanes, mask=mask, other=0.0).to(tl.float32)
    bias = tl.load(bias_ptr + lanes % columns, mask=mask, other=0.0).to(tl.float32)
    tl.store(out_ptr + lanes, x + bias)
