"""WRONG: the backward takes the root mean square for a constant."""

import torch


class RMSNorm(torch.autograd.Function):
    """The forward is right, and losses still go down: only the gradients are off."""

    @staticmethod
    def forward(context, input, weight, eps):
        """Return x / sqrt(mean(x^2) + eps) * weight, computed in float32 or wider and rounded once."""
        dtype = torch.promote_types(input.dtype, torch.float32)
        wide = input.to(dtype)
        reciprocal = torch.rsqrt(wide.square().mean(-1, keepdim=True) + eps)
        context.save_for_backward(input, weight, reciprocal)
        return (wide * reciprocal * weight.to(dtype)).to(input.dtype)

    @staticmethod
    def backward(context, upstream):
        """Return the gradients, without what flows back through the root mean square."""
        input, weight, reciprocal = context.saved_tensors
        dtype = reciprocal.dtype
        upstream, normalised = upstream.to(dtype), input.to(dtype) * reciprocal
        of_input = reciprocal * upstream * weight.to(dtype)
        of_weight = (upstream * normalised).reshape(-1, input.shape[-1]).sum(0)
        return of_input.to(input.dtype), of_weight.to(weight.dtype), None


def rmsnorm(input, weight, eps=1e-5):
    """Return the RMS norm of every row."""
    return RMSNorm.apply(input, weight, eps)
