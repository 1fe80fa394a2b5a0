"""Independent references: norms of channels, with a residual, and in place."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch.nn import functional

from .cases import Array, Case, Reference


def _tensor(case: Case, name: str) -> torch.Tensor | None:
    return torch.from_numpy(case.inputs[name]) if name in case.inputs else None


def groupnorm(case: Case) -> dict[str, Any]:
    """`group_norm` of PyTorch, which refuses a batch of nothing."""
    x = torch.from_numpy(case.input("input"))
    if x.numel() == 0:
        return {"out": x}
    weight, bias = _tensor(case, "weight"), _tensor(case, "bias")
    return {
        "out": functional.group_norm(x, case.parameters["num_groups"], weight, bias, case.parameters["eps"])
    }


def instance_norm(case: Case) -> dict[str, Any]:
    """By `var_mean` over positions: `instance_norm` of PyTorch refuses a single position."""
    x = torch.from_numpy(case.input("input"))
    if x.numel() == 0:
        return {"out": x}
    variance, mean = torch.var_mean(x, dim=-1, correction=0, keepdim=True)
    out = (x - mean) / torch.sqrt(variance + case.parameters["eps"])
    weight, bias = _tensor(case, "weight"), _tensor(case, "bias")
    if weight is not None:
        out = out * weight[:, None]
    if bias is not None:
        out = out + bias[:, None]
    return {"out": out}


def batch_norm(case: Case) -> dict[str, Any]:
    """The formula by broadcasting: PyTorch's own folds the mean into an addend and loses infinities."""
    x, mean, variance = case.input("input"), case.input("running_mean"), case.input("running_var")
    with np.errstate(all="ignore"):
        out = (x - mean[:, None]) / np.sqrt(variance + case.parameters["eps"])[:, None]
        if "weight" in case.inputs:
            out = out * case.input("weight")[:, None]
        if "bias" in case.inputs:
            out = out + case.input("bias")[:, None]
    return {"out": out}


STORAGE = {
    "float16": torch.float16,
    "bfloat16": torch.bfloat16,
    "float32": torch.float32,
    "float64": torch.float64,
}


def _sums(case: Case) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the sum, and the sum that is normalised."""
    total = torch.from_numpy(case.input("input")) + torch.from_numpy(case.input("residual"))
    if not case.parameters["round_residual"]:
        return total, total
    return total, total.to(STORAGE[case.dtype]).to(torch.float64)


def fused_add_rmsnorm(case: Case) -> dict[str, Any]:
    """`rms_norm` of PyTorch on the sum."""
    total, taken = _sums(case)
    weight = torch.from_numpy(case.input("weight"))
    if case.parameters["unit_offset"]:
        weight = weight + 1.0
    normalised = functional.rms_norm(taken, [taken.shape[-1]], weight, case.parameters["eps"])
    return {"input": normalised, "residual": total}


def fused_add_layernorm(case: Case) -> dict[str, Any]:
    """`layer_norm` of PyTorch on the sum."""
    total, taken = _sums(case)
    weight, bias = _tensor(case, "weight"), _tensor(case, "bias")
    out = functional.layer_norm(taken, [taken.shape[-1]], weight, bias, case.parameters["eps"])
    return {"out": out, "residual_out": total}


def softmax_in_place(case: Case) -> dict[str, Any]:
    """The exponential of `log_softmax`."""
    x: Array = case.input("input")
    if x.size == 0:
        return {"input": x}
    return {"input": torch.exp(torch.log_softmax(torch.from_numpy(x), dim=-1))}


REFERENCES: dict[str, Reference] = {
    "groupnorm": groupnorm,
    "instance_norm": instance_norm,
    "batch_norm": batch_norm,
    "fused_add_rmsnorm": fused_add_rmsnorm,
    "fused_add_layernorm": fused_add_layernorm,
    "softmax_": softmax_in_place,
}
