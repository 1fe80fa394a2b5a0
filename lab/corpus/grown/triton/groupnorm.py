"""Group norm with weight and bias by channel: one program a sample and group, which is one run of memory."""

import triton
import triton.language as tl


@triton.jit
def groupnorm_groups(out_ptr, x_ptr, weight_ptr, bias_ptr, channels, length, eps, BLOCK: tl.constexpr):
    """Groups of one sample lie one after the other, and so do samples."""
    group = tl.program_id(1)
    start = (tl.program_id(0).to(tl.int64) * tl.num_programs(1) + group) * channels * length
    lanes = tl.arange(0, BLOCK)
    count = channels * length
    mask = lanes < count
    x = tl.load(x_ptr + start + lanes, mask=mask, other=0.0).to(tl.float32)
    mean = tl.sum(x, axis=0) / count
    centred = tl.where(mask, x - mean, 0.0)
    variance = tl.sum(centred * centred, axis=0) / count
    channel = group * channels + lanes // length
    weight = tl.load(weight_ptr + channel, mask=mask, other=0.0).to(tl.float32)
    bias = tl.load(bias_ptr + channel, mask=mask, other=0.0).to(tl.float32)
    out = centred / tl.sqrt(variance + eps) * weight + bias
    tl.store(out_ptr + start + lanes, out, mask=mask)


@triton.jit
def groupnorm_tail_in_variance(
    out_ptr, x_ptr, weight_ptr, bias_ptr, channels, length, eps, BLOCK: tl.constexpr
):
    """WRONG: a lane beyond the group is 0 - mean, and its square is in the variance."""
    group = tl.program_id(1)
    start = (tl.program_id(0).to(tl.int64) * tl.num_programs(1) + group) * channels * length
    lanes = tl.arange(0, BLOCK)
    count = channels * length
    mask = lanes < count
    x = tl.load(x_ptr + start + lanes, mask=mask, other=0.0).to(tl.float32)
    mean = tl.sum(x, axis=0) / count
    centred = x - mean
    variance = tl.sum(centred * centred, axis=0) / count
    channel = group * channels + lanes // length
    weight = tl.load(weight_ptr + channel, mask=mask, other=0.0).to(tl.float32)
    bias = tl.load(bias_ptr + channel, mask=mask, other=0.0).to(tl.float32)
    out = centred / tl.sqrt(variance + eps) * weight + bias
    tl.store(out_ptr + start + lanes, out, mask=mask)


@triton.jit
def groupnorm_first_sample(out_ptr, x_ptr, weight_ptr, bias_ptr, channels, length, eps, BLOCK: tl.constexpr):
    """WRONG: every sample reads the first one."""
    group = tl.program_id(1)
    start = (tl.program_id(0).to(tl.int64) * tl.num_programs(1) + group) * channels * length
    lanes = tl.arange(0, BLOCK)
    count = channels * length
    mask = lanes < count
    x = tl.load(x_ptr + group * channels * length + lanes, mask=mask, other=0.0).to(tl.float32)
    mean = tl.sum(x, axis=0) / count
    centred = tl.where(mask, x - mean, 0.0)
    variance = tl.sum(centred * centred, axis=0) / count
    channel = group * channels + lanes // length
    weight = tl.load(weight_ptr + channel, mask=mask, other=0.0).to(tl.float32)
    bias = tl.load(bias_ptr + channel, mask=mask, other=0.0).to(tl.float32)
    out = centred / tl.sqrt(variance + eps) * weight + bias
    tl.store(out_ptr + start + lanes, out, mask=mask)
