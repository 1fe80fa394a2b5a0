"""Independent references: norms and softmaxes."""

from __future__ import annotations

from typing import Any

import torch

from .cases import Case, Reference


def softmax(case: Case) -> dict[str, Any]:
    """`torch.softmax`; a row without elements has no maximum there."""
    return {"out": torch.softmax(torch.from_numpy(case.input("input")), dim=-1)}


REFERENCES: dict[str, Reference] = {"softmax": softmax}
