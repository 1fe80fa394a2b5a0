"""Independent references: products, extremes, moments and votes along a dim."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from .cases import Case, Reference


def _tensor(case: Case) -> torch.Tensor:
    return torch.from_numpy(case.input("input"))


def minimum(case: Case) -> dict[str, Any]:
    """`torch.amin`; NumPy's `fmin` where NaN is skipped."""
    if case.parameters["propagate_nan"]:
        return {"out": torch.amin(_tensor(case), dim=-1)}
    return {"out": np.fmin.reduce(case.input("input"), axis=-1)}


def product(case: Case) -> dict[str, Any]:
    """In extended precision, whose range is that of any float32 product of up to 1,000 factors."""
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        return {"out": np.prod(case.input("input").astype(np.longdouble), axis=-1).astype(np.float64)}


def running_product(case: Case) -> dict[str, Any]:
    """`numpy.cumprod`, in extended precision as well."""
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        return {"out": np.cumprod(case.input("input").astype(np.longdouble), axis=-1).astype(np.float64)}


def argmax(case: Case) -> dict[str, Any]:
    """`numpy.argmax`, which documents that the first of several wins and that NaN is the largest."""
    return {"out": np.argmax(case.input("input"), axis=-1)}


def argmin(case: Case) -> dict[str, Any]:
    """`numpy.argmin`."""
    return {"out": np.argmin(case.input("input"), axis=-1)}


def every(case: Case) -> dict[str, Any]:
    """`torch.all`."""
    return {"out": torch.all(_tensor(case), dim=-1)}


def some(case: Case) -> dict[str, Any]:
    """`torch.any`."""
    return {"out": torch.any(_tensor(case), dim=-1)}


def logsumexp(case: Case) -> dict[str, Any]:
    """`torch.logsumexp`."""
    return {"out": torch.logsumexp(_tensor(case), dim=-1)}


def variance(case: Case) -> dict[str, Any]:
    """`torch.var`."""
    return {"out": torch.var(_tensor(case), dim=-1, correction=case.parameters["correction"])}


def sum_columns(case: Case) -> dict[str, Any]:
    """`torch.sum` along the first dim."""
    return {"out": torch.sum(_tensor(case), dim=0)}


REFERENCES: dict[str, Reference] = {
    "all": every,
    "any": some,
    "argmax": argmax,
    "argmin": argmin,
    "cumprod": running_product,
    "logsumexp": logsumexp,
    "min": minimum,
    "prod": product,
    "sum_columns": sum_columns,
    "var": variance,
}
