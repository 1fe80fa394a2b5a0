"""Independent references: arithmetic, functions and gates element by element."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812

from .cases import Case, Reference


def _tensor(case: Case, name: str) -> torch.Tensor:
    return torch.from_numpy(case.input(name))


def _unary(function: Any) -> Reference:
    return lambda case: {"out": function(_tensor(case, "input"))}


def add(case: Case) -> dict[str, Any]:
    """`torch.add`."""
    alpha = case.parameters["alpha"]
    return {"out": torch.add(_tensor(case, "input"), _tensor(case, "other"), alpha=alpha)}


def sub(case: Case) -> dict[str, Any]:
    """`torch.sub`."""
    alpha = case.parameters["alpha"]
    return {"out": torch.sub(_tensor(case, "input"), _tensor(case, "other"), alpha=alpha)}


def add_in_place(case: Case) -> dict[str, Any]:
    """`Tensor.add_`."""
    return {
        "input": _tensor(case, "input").clone().add_(_tensor(case, "other"), alpha=case.parameters["alpha"])
    }


def mul(case: Case) -> dict[str, Any]:
    """`torch.mul`."""
    return {"out": torch.mul(_tensor(case, "input"), _tensor(case, "other"))}


def mul_in_place(case: Case) -> dict[str, Any]:
    """`Tensor.mul_`."""
    return {"input": _tensor(case, "input").clone().mul_(_tensor(case, "other"))}


def div(case: Case) -> dict[str, Any]:
    """`torch.div`."""
    return {"out": torch.div(_tensor(case, "input"), _tensor(case, "other"))}


def bias_add(case: Case) -> dict[str, Any]:
    """PyTorch's broadcasting over rows."""
    return {"out": _tensor(case, "input") + _tensor(case, "bias")}


def softplus(case: Case) -> dict[str, Any]:
    """`torch.nn.functional.softplus`."""
    beta, threshold = case.parameters["beta"], case.parameters["threshold"]
    return {"out": F.softplus(_tensor(case, "input"), beta=beta, threshold=threshold)}


def clamp(case: Case) -> dict[str, Any]:
    """`torch.clamp`."""
    return {
        "out": torch.clamp(_tensor(case, "input"), min=case.parameters["min"], max=case.parameters["max"])
    }


def where(case: Case) -> dict[str, Any]:
    """`torch.where`."""
    return {"out": torch.where(_tensor(case, "condition"), _tensor(case, "input"), _tensor(case, "other"))}


def dropout(case: Case) -> dict[str, Any]:
    """The product that PyTorch's dropout makes of a mask it has drawn."""
    keep = _tensor(case, "mask").to(torch.float64)
    return {"out": _tensor(case, "input") * keep.div(1.0 - case.parameters["p"])}


def geglu(case: Case) -> dict[str, Any]:
    """`torch.nn.functional.gelu` in either form, times the other half."""
    approximate = "tanh" if case.parameters["approximate_tanh"] else "none"
    return {"out": F.gelu(_tensor(case, "gate"), approximate=approximate) * _tensor(case, "up")}


def relu_in_place(case: Case) -> dict[str, Any]:
    """`torch.relu_`."""
    return {"input": torch.relu_(_tensor(case, "input").clone())}


REFERENCES: dict[str, Reference] = {
    "add": add,
    "add_": add_in_place,
    "bias_add": bias_add,
    "clamp": clamp,
    "div": div,
    "dropout": dropout,
    "exp": _unary(torch.exp),
    "geglu": geglu,
    "hardswish": _unary(F.hardswish),
    "log": _unary(torch.log),
    "mish": _unary(F.mish),
    "mul": mul,
    "mul_": mul_in_place,
    "reciprocal": _unary(torch.reciprocal),
    "relu_": relu_in_place,
    "rsqrt": _unary(torch.rsqrt),
    "softplus": softplus,
    "sqrt": _unary(torch.sqrt),
    "sub": sub,
    "where": where,
}
