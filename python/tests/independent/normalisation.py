"""Independent references: norms and softmaxes."""

from __future__ import annotations

from typing import Any

import torch
from torch.nn import functional

from .cases import Case, Reference


def _tensor(case: Case, name: str) -> torch.Tensor:
    return torch.from_numpy(case.input(name))


def _optional(case: Case, name: str) -> torch.Tensor | None:
    return _tensor(case, name) if name in case.inputs else None


def softmax(case: Case) -> dict[str, Any]:
    """`torch.softmax`; a row without elements has no maximum there."""
    return {"out": torch.softmax(_tensor(case, "input"), dim=-1)}


def log_softmax(case: Case) -> dict[str, Any]:
    """`torch.log_softmax`."""
    return {"out": torch.log_softmax(_tensor(case, "input"), dim=-1)}


def layernorm(case: Case) -> dict[str, Any]:
    """`layer_norm` of PyTorch."""
    x, weight, bias = _tensor(case, "input"), _optional(case, "weight"), _optional(case, "bias")
    return {"out": functional.layer_norm(x, x.shape[-1:], weight, bias, case.parameters["eps"])}


def rmsnorm(case: Case) -> dict[str, Any]:
    """`rms_norm` of PyTorch, with one more than the weight where that is asked for."""
    x, weight = _tensor(case, "input"), _optional(case, "weight")
    if weight is not None and case.parameters["unit_offset"]:
        weight = 1.0 + weight
    return {"out": functional.rms_norm(x, list(x.shape[-1:]), weight, case.parameters["eps"])}


def l2norm(case: Case) -> dict[str, Any]:
    """`normalize` of PyTorch, the formula of TensorFlow's `l2_normalize`, or one of the two that add eps."""
    x, eps = _tensor(case, "input"), case.parameters["eps"]
    outside, minimum = case.parameters["eps_outside"], case.parameters["eps_is_minimum"]
    if outside and minimum:
        return {"out": functional.normalize(x, p=2.0, dim=-1, eps=eps)}
    if outside:
        return {"out": x / (torch.linalg.vector_norm(x, dim=-1, keepdim=True) + eps)}
    squares = torch.sum(torch.square(x), dim=-1, keepdim=True)
    return {"out": x * torch.rsqrt(squares.clamp_min(eps) if minimum else squares + eps)}


REFERENCES: dict[str, Reference] = {
    "l2norm": l2norm,
    "layernorm": layernorm,
    "log_softmax": log_softmax,
    "rmsnorm": rmsnorm,
    "softmax": softmax,
}
