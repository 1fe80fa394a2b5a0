"""Independent references: reduction."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from .cases import Case, Reference


def sum_of_rows(case: Case) -> dict[str, Any]:
    """`sum` of PyTorch."""
    return {"out": torch.from_numpy(case.input("input")).sum(dim=-1)}


def mean(case: Case) -> dict[str, Any]:
    """`mean` of PyTorch."""
    return {"out": torch.from_numpy(case.input("input")).mean(dim=-1)}


def max_of_rows(case: Case) -> dict[str, Any]:
    """`amax` of PyTorch, in which NaN wins, or `fmax` of NumPy, which skips it."""
    if case.parameters["propagate_nan"]:
        return {"out": torch.amax(torch.from_numpy(case.input("input")), dim=-1)}
    return {"out": np.fmax.reduce(case.input("input"), axis=-1)}


def cumsum(case: Case) -> dict[str, Any]:
    """`cumsum` of PyTorch: of flipped rows where `reverse`, of rows behind a zero where `exclusive`."""
    x = torch.from_numpy(case.input("input"))
    if case.parameters["reverse"]:
        x = x.flip(-1)
    if case.parameters["exclusive"]:
        x = torch.cat([torch.zeros_like(x[..., :1]), x[..., :-1]], dim=-1)
    sums = torch.cumsum(x, dim=-1)
    return {"out": sums.flip(-1) if case.parameters["reverse"] else sums}


REFERENCES: dict[str, Reference] = {
    "cumsum": cumsum,
    "max": max_of_rows,
    "mean": mean,
    "sum": sum_of_rows,
}
