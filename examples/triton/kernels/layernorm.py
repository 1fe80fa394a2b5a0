"""Layer norm in Triton: a fixed number of programs share the rows, in tiles of BLOCK columns."""

import numpy as np
import triton
import triton.language as tl

PROGRAMS = 16


@triton.jit
def layernorm_kernel(out_ptr, input_ptr, weight_ptr, bias_ptr, rows, columns, eps, BLOCK: tl.constexpr):
    """Write (x - mean) / sqrt(variance + eps) * weight + bias, computed in float32."""
    lanes = tl.arange(0, BLOCK)
    for row in range(tl.program_id(0), rows, tl.num_programs(0)):
        # 64 bits: row times columns passes 2^31 in tensors of everyday size.
        first = row.to(tl.int64) * columns
        total = tl.zeros([BLOCK], tl.float32)
        for start in range(0, columns, BLOCK):
            mask = start + lanes < columns
            total += tl.load(input_ptr + first + start + lanes, mask=mask, other=0.0).to(tl.float32)
        mean = tl.sum(total) / columns
        squares = tl.zeros([BLOCK], tl.float32)
        for start in range(0, columns, BLOCK):
            mask = start + lanes < columns
            x = tl.load(input_ptr + first + start + lanes, mask=mask, other=0.0).to(tl.float32)
            # A masked lane holds 0, and 0 - mean is not 0: it has to be masked again.
            centred = tl.where(mask, x - mean, 0.0)
            squares += centred * centred
        reciprocal = 1.0 / tl.sqrt_rn(tl.sum(squares) / columns + eps)
        for start in range(0, columns, BLOCK):
            mask = start + lanes < columns
            x = tl.load(input_ptr + first + start + lanes, mask=mask, other=0.0).to(tl.float32)
            weight = tl.load(weight_ptr + start + lanes, mask=mask, other=0.0).to(tl.float32)
            bias = tl.load(bias_ptr + start + lanes, mask=mask, other=0.0).to(tl.float32)
            tl.store(out_ptr + first + start + lanes, (x - mean) * reciprocal * weight + bias, mask=mask)


def layernorm(input, weight, bias, eps=1e-5):
    """Launch the kernel, as it is launched on a GPU."""
    columns = input.shape[-1]
    # The kernel takes no strides.
    input, weight, bias = (np.ascontiguousarray(array) for array in (input, weight, bias))
    out = np.empty_like(input)
    rows = input.size // columns
    layernorm_kernel[(PROGRAMS,)](out, input, weight, bias, rows, columns, eps, BLOCK=128)
    return out
