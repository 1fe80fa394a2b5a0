"""Cross entropy of one class a row: one program a row."""

import triton
import triton.language as tl


@triton.jit
def cross_entropy_rows(out_ptr, x_ptr, target_ptr, columns, ignored, BLOCK: tl.constexpr):
    """max + log(sum(exp(x - max))) - x[target]: no probability is formed."""
    row = tl.program_id(0).to(tl.int64)
    target = tl.load(target_ptr + row)
    lanes = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * columns + lanes, mask=lanes < columns, other=-float("inf")).to(tl.float32)
    largest = tl.max(x, axis=0)
    total = tl.sum(tl.exp(x - largest), axis=0)
    chosen = tl.load(x_ptr + row * columns + target, mask=target != ignored, other=0.0).to(tl.float32)
    loss = largest - chosen + tl.log(total)
    tl.store(out_ptr + row, tl.where(target == ignored, 0.0, loss))


@triton.jit
def cross_entropy_of_probability(out_ptr, x_ptr, target_ptr, columns, ignored, BLOCK: tl.constexpr):
    """WRONG: the logarithm of a probability in the tensor's dtype: one close to 1 has become 1."""
    row = tl.program_id(0).to(tl.int64)
    target = tl.load(target_ptr + row)
    lanes = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * columns + lanes, mask=lanes < columns, other=-float("inf")).to(tl.float32)
    largest = tl.max(x, axis=0)
    total = tl.sum(tl.exp(x - largest), axis=0)
    chosen = tl.load(x_ptr + row * columns + target, mask=target != ignored, other=0.0).to(tl.float32)
    probability = (tl.exp(chosen - largest) / total).to(out_ptr.dtype.element_ty)
    loss = -tl.log(probability.to(tl.float32))
    tl.store(out_ptr + row, tl.where(target == ignored, 0.0, loss))
