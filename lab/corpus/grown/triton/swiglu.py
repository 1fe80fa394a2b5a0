"""silu(gate)*up, and its gradients. Flat: every program has BLOCK neighbouring elements."""

import triton
import triton.language as tl


@triton.jit
def swiglu_flat(out_ptr, gate_ptr, up_ptr, count, BLOCK: tl.constexpr):
    """The last program stores as far as there are elements."""
    lanes = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = lanes < count
    gate = tl.load(gate_ptr + lanes, mask=mask, other=0.0).to(tl.float32)
    up = tl.load(up_ptr + lanes, mask=mask, other=0.0).to(tl.float32)
    tl.store(out_ptr + lanes, gate * tl.sigmoid(gate) * up, mask=mask)


@triton.jit
def swiglu_unmasked_store(out_ptr, gate_ptr, up_ptr, count, BLOCK: tl.constexpr):
    """WRONG: the last program stores a whole block, beyond the end of the output."""
    lanes = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = lanes < count
    gate = tl.load(gate_ptr + lanes, mask=mask, other=0.0).to(tl.float32)
    up = tl.load(up_ptr + lanes, mask=mask, other=0.0).to(tl.float32)
    tl.store(out_ptr + lanes, gate * tl.sigmoid(gate) * up)


@triton.jit
def swiglu_backward_flat(grad_gate_ptr, grad_up_ptr, grad_ptr, gate_ptr, up_ptr, count, BLOCK: tl.constexpr):
    """grad_gate is the gradient times up times the slope of silu, grad_up the gradient times silu."""
    lanes = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = lanes < count
    grad = tl.load(grad_ptr + lanes, mask=mask).to(tl.float32)
    gate = tl.load(gate_ptr + lanes, mask=mask).to(tl.float32)
    up = tl.load(up_ptr + lanes, mask=mask).to(tl.float32)
    sigmoid = tl.sigmoid(gate)
    slope = sigmoid * (1.0 + gate * (1.0 - sigmoid))
    tl.store(grad_gate_ptr + lanes, grad * up * slope, mask=mask)
    tl.store(grad_up_ptr + lanes, grad * (gate * sigmoid), mask=mask)


@triton.jit
def swiglu_backward_no_upstream(
    grad_gate_ptr, grad_up_ptr, grad_ptr, gate_ptr, up_ptr, count, BLOCK: tl.constexpr
):
    """WRONG: the gradient of up leaves out what comes from above."""
    lanes = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = lanes < count
    grad = tl.load(grad_ptr + lanes, mask=mask).to(tl.float32)
    gate = tl.load(gate_ptr + lanes, mask=mask).to(tl.float32)
    up = tl.load(up_ptr + lanes, mask=mask).to(tl.float32)
    sigmoid = tl.sigmoid(gate)
    slope = sigmoid * (1.0 + gate * (1.0 - sigmoid))
    tl.store(grad_gate_ptr + lanes, grad * up * slope, mask=mask)
    tl.store(grad_up_ptr + lanes, gate * sigmoid, mask=mask)


@triton.jit
def swiglu_backward_gate_for_up(
    grad_gate_ptr, grad_up_ptr, grad_ptr, gate_ptr, up_ptr, count, BLOCK: tl.constexpr
):
    """WRONG: the gradient of the gate is multiplied by the gate in place of up."""
    lanes = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = lanes < count
    grad = tl.load(grad_ptr + lanes, mask=mask).to(tl.float32)
    gate = tl.load(gate_ptr + lanes, mask=mask).to(tl.float32)
    sigmoid = tl.sigmoid(gate)
    slope = sigmoid * (1.0 + gate * (1.0 - sigmoid))
    tl.store(grad_gate_ptr + lanes, grad * gate * slope, mask=mask)
    tl.store(grad_up_ptr + lanes, grad * (gate * sigmoid), mask=mask)
