"""Independent references: losses."""

from __future__ import annotations

from typing import Any

import torch
from torch.nn import functional

from .cases import Case, Reference


def tensors(case: Case, *names: str) -> list[Any]:
    """Return inputs as tensors, `None` where an optional one is absent."""
    return [torch.from_numpy(case.inputs[name]) if name in case.inputs else None for name in names]


def smoothing(case: Case) -> dict[str, Any]:
    """Return the parameters of a cross entropy."""
    return {name: case.parameters[name] for name in ("label_smoothing", "ignore_index")}


def cross_entropy(case: Case) -> dict[str, Any]:
    """`torch.nn.functional.cross_entropy` without reduction."""
    return {
        "out": functional.cross_entropy(
            *tensors(case, "input", "target"), reduction="none", **smoothing(case)
        )
    }


def cross_entropy_mean(case: Case) -> dict[str, Any]:
    """`torch.nn.functional.cross_entropy` as it is."""
    return {"out": functional.cross_entropy(*tensors(case, "input", "target"), **smoothing(case))}


def fused_linear_cross_entropy(case: Case) -> dict[str, Any]:
    """`torch.nn.functional.linear`, then its cross entropy."""
    data, weight, bias, target = tensors(case, "input", "weight", "bias", "target")
    return {"out": functional.cross_entropy(functional.linear(data, weight, bias), target, **smoothing(case))}


def nll_loss(case: Case) -> dict[str, Any]:
    """`torch.nn.functional.nll_loss`."""
    data, target, weight = tensors(case, "input", "target", "weight")
    return {"out": functional.nll_loss(data, target, weight, ignore_index=case.parameters["ignore_index"])}


def kl_div(case: Case) -> dict[str, Any]:
    """`torch.nn.functional.kl_div` without reduction."""
    data, target = tensors(case, "input", "target")
    log_target = case.parameters["log_target"]
    return {"out": functional.kl_div(data, target, reduction="none", log_target=log_target)}


def kl_div_batchmean(case: Case) -> dict[str, Any]:
    """`torch.nn.functional.kl_div` with reduction `batchmean`."""
    data, target = tensors(case, "input", "target")
    log_target = case.parameters["log_target"]
    return {"out": functional.kl_div(data, target, reduction="batchmean", log_target=log_target)}


def mse_loss(case: Case) -> dict[str, Any]:
    """`torch.nn.functional.mse_loss`."""
    return {"out": functional.mse_loss(*tensors(case, "input", "target"))}


def mse_loss_none(case: Case) -> dict[str, Any]:
    """`torch.nn.functional.mse_loss` without reduction."""
    return {"out": functional.mse_loss(*tensors(case, "input", "target"), reduction="none")}


def smooth_l1_loss(case: Case) -> dict[str, Any]:
    """`torch.nn.functional.smooth_l1_loss`."""
    return {"out": functional.smooth_l1_loss(*tensors(case, "input", "target"), beta=case.parameters["beta"])}


def huber_loss(case: Case) -> dict[str, Any]:
    """`torch.nn.functional.huber_loss`."""
    return {"out": functional.huber_loss(*tensors(case, "input", "target"), delta=case.parameters["delta"])}


def binary_cross_entropy_with_logits(case: Case) -> dict[str, Any]:
    """`torch.nn.functional.binary_cross_entropy_with_logits`."""
    data, target, weight = tensors(case, "input", "target", "pos_weight")
    return {"out": functional.binary_cross_entropy_with_logits(data, target, pos_weight=weight)}


REFERENCES: dict[str, Reference] = {
    "binary_cross_entropy_with_logits": binary_cross_entropy_with_logits,
    "cross_entropy": cross_entropy,
    "cross_entropy_mean": cross_entropy_mean,
    "fused_linear_cross_entropy": fused_linear_cross_entropy,
    "huber_loss": huber_loss,
    "kl_div": kl_div,
    "kl_div_batchmean": kl_div_batchmean,
    "mse_loss": mse_loss,
    "mse_loss_none": mse_loss_none,
    "nll_loss": nll_loss,
    "smooth_l1_loss": smooth_l1_loss,
}
