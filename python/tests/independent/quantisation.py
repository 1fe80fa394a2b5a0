"""Independent references: to narrow formats and back."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from .cases import Array, Case, Reference

LARGEST_FLOAT8 = torch.finfo(torch.float8_e4m3fn).max


def _real(case: Case, name: str) -> torch.Tensor:
    """Return an input in float64, whole numbers too."""
    return torch.from_numpy(case.input(name)).to(torch.float64)


def _row_scale(rows: torch.Tensor, levels: float, eps: float, upper: float = 0.0) -> torch.Tensor:
    """Return a scale per row, the last dim kept."""
    largest = torch.linalg.vector_norm(rows, ord=float("inf"), dim=-1, keepdim=True)
    return torch.clamp(largest, min=eps, max=upper or None) / levels


def _codes(rows: torch.Tensor, scale: torch.Tensor, low: int, high: int) -> torch.Tensor:
    """Return the nearest codes; 0/0 is 0."""
    return torch.nan_to_num(torch.round(rows / scale), nan=0.0).clamp(low, high)


def quantize_int8_per_token(case: Case) -> dict[str, Any]:
    """Largest magnitudes become 127."""
    rows = _real(case, "input")
    scale = _row_scale(rows, 127, case.parameters["eps"])
    return {"q": _codes(rows, scale, -127, 127), "scale": scale.squeeze(-1)}


def dequantize_int8_per_token(case: Case) -> dict[str, Any]:
    """Codes times scales."""
    return {"out": _real(case, "q") * _real(case, "scale").unsqueeze(-1)}


def _affine(values: torch.Tensor, scale: torch.Tensor | float, zero: torch.Tensor | int) -> torch.Tensor:
    """Return the codes of `torch.quantize_per_tensor`, which is for float32 alone."""
    bounds = torch.iinfo(torch.int8)
    return torch.clamp(torch.round(values / scale) + zero, bounds.min, bounds.max)


def quantize_int8_per_tensor(case: Case) -> dict[str, Any]:
    """Steps to the zero point."""
    return {"q": _affine(_real(case, "input"), case.parameters["scale"], case.parameters["zero_point"])}


def dequantize_int8_per_tensor(case: Case) -> dict[str, Any]:
    """Steps from the zero point times the scale."""
    return {"out": (_real(case, "q") - case.parameters["zero_point"]) * case.parameters["scale"]}


def quantize_int8_per_channel(case: Case) -> dict[str, Any]:
    """Steps to the zero point of the row."""
    zeros = _real(case, "zero_point").unsqueeze(1) if "zero_point" in case.inputs else 0
    return {"q": _affine(_real(case, "input"), _real(case, "scale").unsqueeze(1), zeros)}


def dequantize_int8_per_channel(case: Case) -> dict[str, Any]:
    """Steps from the zero point times the scale of the row."""
    zeros = _real(case, "zero_point").unsqueeze(1) if "zero_point" in case.inputs else 0.0
    return {"out": (_real(case, "q") - zeros) * _real(case, "scale").unsqueeze(1)}


def _groups(case: Case, name: str) -> torch.Tensor:
    """Return rows cut into groups."""
    values = _real(case, name)
    return values.reshape(len(values), case.sizes["Q"], case.sizes["group_size"])


def quantize_int4_per_group(case: Case) -> dict[str, Any]:
    """Largest magnitudes become 7; even places in the lower nibble."""
    groups = _groups(case, "input")
    scale = _row_scale(groups, 7, case.parameters["eps"])
    nibbles = (_codes(groups, scale, -8, 7) + 8).reshape(len(groups), groups.shape[1] * groups.shape[2])
    return {"packed": nibbles[:, 0::2] + 16 * nibbles[:, 1::2], "scale": scale.squeeze(-1)}


def dequantize_int4_per_group(case: Case) -> dict[str, Any]:
    """Nibbles less the zero point, times the scale of their group."""
    packed: Array = case.input("packed")
    nibbles = np.zeros((len(packed), 2 * packed.shape[1]))
    nibbles[:, 0::2], nibbles[:, 1::2] = packed & 15, packed >> 4
    zeros = np.repeat(case.input("zeros"), case.sizes["group_size"], axis=1) if "zeros" in case.inputs else 8
    steps = torch.from_numpy(nibbles - zeros)
    return {"out": steps * _real(case, "scale").repeat_interleave(case.sizes["group_size"], dim=1)}


def _float8(values: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
    """Return what is rounded to float8, before it is."""
    return torch.clamp(values / scale, -LARGEST_FLOAT8, LARGEST_FLOAT8)


def quantize_fp8_per_token(case: Case) -> dict[str, Any]:
    """Largest magnitudes become 448."""
    rows = _real(case, "input")
    scale = _row_scale(rows, LARGEST_FLOAT8, case.parameters["eps"], case.parameters["scale_ub"])
    return {"q": _float8(rows, scale), "scale": scale.squeeze(-1)}


def quantize_fp8_per_block(case: Case) -> dict[str, Any]:
    """Largest magnitudes of groups become 448."""
    groups = _groups(case, "input")
    scale = _row_scale(groups, LARGEST_FLOAT8, case.parameters["eps"])
    return {"q": _float8(groups, scale).reshape(case.input("input").shape), "scale": scale.squeeze(-1)}


def quantize_fp8_static(case: Case) -> dict[str, Any]:
    """A quotient, clamped."""
    return {"q": _float8(_real(case, "input"), _real(case, "scale")[0])}


def dequantize_fp8_per_token(case: Case) -> dict[str, Any]:
    """Numbers times the scale of their row."""
    return {"out": _real(case, "q") * _real(case, "scale").unsqueeze(-1)}


def dequantize_fp8_per_block(case: Case) -> dict[str, Any]:
    """Numbers times the scale of their group."""
    return {"out": _real(case, "q") * _real(case, "scale").repeat_interleave(case.sizes["group_size"], dim=1)}


REFERENCES: dict[str, Reference] = {
    "dequantize_fp8_per_block": dequantize_fp8_per_block,
    "dequantize_fp8_per_token": dequantize_fp8_per_token,
    "dequantize_int4_per_group": dequantize_int4_per_group,
    "dequantize_int8_per_channel": dequantize_int8_per_channel,
    "dequantize_int8_per_tensor": dequantize_int8_per_tensor,
    "dequantize_int8_per_token": dequantize_int8_per_token,
    "quantize_fp8_per_block": quantize_fp8_per_block,
    "quantize_fp8_per_token": quantize_fp8_per_token,
    "quantize_fp8_static": quantize_fp8_static,
    "quantize_int4_per_group": quantize_int4_per_group,
    "quantize_int8_per_channel": quantize_int8_per_channel,
    "quantize_int8_per_tensor": quantize_int8_per_tensor,
    "quantize_int8_per_token": quantize_int8_per_token,
}
