"""Independent references: backward, by automatic differentiation where that is exact enough."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch.nn import functional

from .cases import Case, Reference


def _leaf(case: Case, name: str) -> torch.Tensor:
    return torch.from_numpy(case.input(name)).requires_grad_()


def _upstream(case: Case) -> torch.Tensor:
    return torch.from_numpy(case.input("grad_output"))


def _weight(case: Case, width: int) -> torch.Tensor:
    """Return the weight as a leaf, ones where the op has none."""
    ones = torch.ones(width, dtype=torch.float64)
    return (torch.from_numpy(case.inputs["weight"]) if "weight" in case.inputs else ones).requires_grad_()


def softmax_backward(case: Case) -> dict[str, Any]:
    """By the backward that PyTorch calls; rows of y need not add up to 1."""
    dy, y = _upstream(case), torch.from_numpy(case.input("output"))
    return {"grad_input": torch.ops.aten._softmax_backward_data(dy, y, -1, torch.float64)}


def log_softmax_backward(case: Case) -> dict[str, Any]:
    """By the backward that PyTorch calls."""
    dy, y = _upstream(case), torch.from_numpy(case.input("output"))
    return {"grad_input": torch.ops.aten._log_softmax_backward_data(dy, y, -1, torch.float64)}


def layernorm_backward(case: Case) -> dict[str, Any]:
    """`layer_norm` differentiated."""
    x = _leaf(case, "input")
    width = x.shape[-1]
    weight = _weight(case, width)
    bias = torch.zeros(width, dtype=torch.float64, requires_grad=True)
    out = functional.layer_norm(x, [width], weight, bias, case.parameters["eps"])
    grads = torch.autograd.grad(out, [x, weight, bias], _upstream(case))
    return dict(zip(("grad_input", "grad_weight", "grad_bias"), grads, strict=True))


def rmsnorm_backward(case: Case) -> dict[str, Any]:
    """`rms_norm` differentiated."""
    x = _leaf(case, "input")
    width = x.shape[-1]
    weight = _weight(case, width)
    scale = weight + 1.0 if case.parameters["unit_offset"] and "weight" in case.inputs else weight
    out = functional.rms_norm(x, [width], scale, case.parameters["eps"])
    grads = torch.autograd.grad(out, [x, weight], _upstream(case))
    return dict(zip(("grad_input", "grad_weight"), grads, strict=True))


def cross_entropy_backward(case: Case) -> dict[str, Any]:
    """`softmax` minus the target distribution, as the derivative is on paper."""
    x, target = torch.from_numpy(case.input("input")), torch.from_numpy(case.input("target"))
    smoothing, classes = case.parameters["label_smoothing"], case.sizes["V"]
    wanted = (1 - smoothing) * functional.one_hot(target, classes).double() + smoothing / classes
    grad = (torch.softmax(x, dim=-1) - wanted) * _upstream(case)[:, None]
    ignored = target == case.parameters["ignore_index"]
    return {"grad_input": torch.where(ignored[:, None], 0.0, grad)}


def silu_backward(case: Case) -> dict[str, Any]:
    """`silu` differentiated."""
    x = _leaf(case, "input")
    return {"grad_input": torch.autograd.grad(functional.silu(x), x, _upstream(case))[0]}


def gelu_backward(case: Case) -> dict[str, Any]:
    """`gelu` differentiated.

    Its tanh form as g(x) = x*sigmoid(2z) below zero, where no digits cancel; above, g(x) = x + g(-x).
    """
    x = _leaf(case, "input")
    if not case.parameters["approximate"]:
        return {"grad_input": torch.autograd.grad(functional.gelu(x), x, _upstream(case))[0]}
    below = (-x.detach().abs()).requires_grad_()
    out = below * torch.sigmoid(2 * math.sqrt(2 / math.pi) * (below + 0.044715 * below**3))
    slope = torch.autograd.grad(out.sum(), below)[0]
    return {"grad_input": _upstream(case) * torch.where(x > 0, 1 - slope, slope).detach()}


def swiglu_backward(case: Case) -> dict[str, Any]:
    """silu(gate)*up differentiated."""
    gate, up = _leaf(case, "gate"), _leaf(case, "up")
    grads = torch.autograd.grad(functional.silu(gate) * up, [gate, up], _upstream(case))
    return dict(zip(("grad_gate", "grad_up"), grads, strict=True))


REFERENCES: dict[str, Reference] = {
    "softmax_backward": softmax_backward,
    "log_softmax_backward": log_softmax_backward,
    "layernorm_backward": layernorm_backward,
    "rmsnorm_backward": rmsnorm_backward,
    "cross_entropy_backward": cross_entropy_backward,
    "silu_backward": silu_backward,
    "gelu_backward": gelu_backward,
    "swiglu_backward": swiglu_backward,
}
