"""Independent references: linear."""

from __future__ import annotations

from typing import Any

import torch

from .cases import Case, Reference


def matmul(case: Case) -> dict[str, Any]:
    """`torch.matmul`."""
    return {"out": torch.matmul(torch.from_numpy(case.input("a")), torch.from_numpy(case.input("b")))}


REFERENCES: dict[str, Reference] = {"matmul": matmul}
