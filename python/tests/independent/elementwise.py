"""Independent references: elementwise."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from scipy import special
from torch.nn import functional

from .cases import Case, Reference


def _input(case: Case) -> torch.Tensor:
    return torch.from_numpy(case.input("input"))


def relu(case: Case) -> dict[str, Any]:
    """`relu` of PyTorch, in which NaN stays NaN."""
    return {"out": functional.relu(_input(case))}


def leaky_relu(case: Case) -> dict[str, Any]:
    """`leaky_relu` of PyTorch."""
    return {"out": functional.leaky_relu(_input(case), case.parameters["negative_slope"])}


def elu(case: Case) -> dict[str, Any]:
    """`elu` of PyTorch."""
    return {"out": functional.elu(_input(case), case.parameters["alpha"])}


def gelu(case: Case) -> dict[str, Any]:
    """X times the normal distribution, whose left tail SciPy has without cancellation."""
    x = case.input("input")
    with np.errstate(invalid="ignore"):  # -Inf times 0
        return {"out": x * special.ndtr(x)}


def gelu_tanh(case: Case) -> dict[str, Any]:
    """`gelu` of PyTorch in its tanh form."""
    return {"out": functional.gelu(_input(case), approximate="tanh")}


def sigmoid(case: Case) -> dict[str, Any]:
    """`expit` of SciPy."""
    return {"out": special.expit(case.input("input"))}


def silu(case: Case) -> dict[str, Any]:
    """`silu` of PyTorch."""
    return {"out": functional.silu(_input(case))}


def swiglu(case: Case) -> dict[str, Any]:
    """`silu` of PyTorch, times the other half."""
    gate, up = torch.from_numpy(case.input("gate")), torch.from_numpy(case.input("up"))
    return {"out": functional.silu(gate) * up}


def tanh(case: Case) -> dict[str, Any]:
    """`tanh` of PyTorch."""
    return {"out": torch.tanh(_input(case))}


REFERENCES: dict[str, Reference] = {
    "elu": elu,
    "gelu": gelu,
    "gelu_tanh": gelu_tanh,
    "leaky_relu": leaky_relu,
    "relu": relu,
    "sigmoid": sigmoid,
    "silu": silu,
    "swiglu": swiglu,
    "tanh": tanh,
}
