"""Independent references: products of matrices with batches, groups, epilogues and quantised operands."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch.nn import functional

from .cases import Array, Case, Reference


def _real(case: Case, name: str) -> torch.Tensor:
    """Return an input in float64, whole numbers too."""
    return torch.from_numpy(case.input(name)).to(torch.float64)


def _optional(case: Case, name: str) -> torch.Tensor | None:
    return _real(case, name) if name in case.inputs else None


def bmm(case: Case) -> dict[str, Any]:
    """`torch.bmm`."""
    return {"out": torch.bmm(_real(case, "a"), _real(case, "b"))}


def grouped_matmul(case: Case) -> dict[str, Any]:
    """Each group's rows, cut out, times the group's matrix."""
    offsets = [int(end) for end in case.input("offsets")]
    groups = torch.split(_real(case, "a"), np.diff(offsets).tolist())
    return {"out": torch.cat([rows @ matrix for rows, matrix in zip(groups, _real(case, "b"), strict=True)])}


def addmm(case: Case) -> dict[str, Any]:
    """`torch.addmm`, which does not read its first argument where beta is 0."""
    parameters = {name: case.parameters[name] for name in ("beta", "alpha")}
    return {"out": torch.addmm(_real(case, "input"), _real(case, "mat1"), _real(case, "mat2"), **parameters)}


def linear(case: Case) -> dict[str, Any]:
    """`torch.nn.functional.linear`."""
    return {"out": functional.linear(_real(case, "input"), _real(case, "weight"), _optional(case, "bias"))}


def linear_relu(case: Case) -> dict[str, Any]:
    """`linear` and `relu` of PyTorch."""
    return {"out": functional.relu(linear(case)["out"])}


def linear_gelu(case: Case) -> dict[str, Any]:
    """`linear` and `gelu` of PyTorch."""
    form = "tanh" if case.parameters["approximate_tanh"] else "none"
    return {"out": functional.gelu(linear(case)["out"], approximate=form)}


def linear_silu(case: Case) -> dict[str, Any]:
    """`linear` and `silu` of PyTorch."""
    return {"out": functional.silu(linear(case)["out"])}


def int8_matmul(case: Case) -> dict[str, Any]:
    """A product of int64 matrices."""
    return {"out": case.input("a") @ case.input("b")}


def w8a8_matmul(case: Case) -> dict[str, Any]:
    """Scales as diagonal matrices on either side."""
    whole = torch.from_numpy((case.input("a") @ case.input("b")).astype(np.float64))
    out = whole * _real(case, "a_scale").unsqueeze(1) * _real(case, "b_scale")
    bias = _optional(case, "bias")
    return {"out": out if bias is None else out + bias}


def w8a16_matmul(case: Case) -> dict[str, Any]:
    """`torch.nn.functional.linear` with the weight dequantised beforehand."""
    weight = _real(case, "weight") * _real(case, "scale").unsqueeze(1)
    return {"out": functional.linear(_real(case, "a"), weight, _optional(case, "bias"))}


def _unpacked(packed: Array, axis: int) -> Array:
    """Return the nibbles of bytes, the lower one first, along an axis."""
    pairs = np.stack(np.divmod(packed, 16)[::-1], axis=axis + 1)
    shape = list(packed.shape)
    shape[axis] *= 2
    return pairs.reshape(shape)


def w4a16_matmul(case: Case) -> dict[str, Any]:
    """A plain product with the weight unpacked and dequantised beforehand."""
    group = case.sizes["S"]
    codes = _unpacked(case.input("weight"), 0).astype(np.float64)
    zeros = np.repeat(case.input("zeros"), group, axis=0) if "zeros" in case.inputs else 8.0
    weight = (codes - zeros) * np.repeat(case.input("scales"), group, axis=0)
    return {"out": _real(case, "a") @ torch.from_numpy(weight)}


def _with_bias(case: Case, out: torch.Tensor) -> dict[str, Any]:
    bias = _optional(case, "bias")
    return {"out": out if bias is None else out + bias}


def scaled_fp8_matmul(case: Case) -> dict[str, Any]:
    """Rows and columns dequantised before the product."""
    left = _real(case, "a") * _real(case, "scale_a").unsqueeze(1)
    return _with_bias(case, left @ (_real(case, "b") * _real(case, "scale_b")))


def scaled_fp8_matmul_per_tensor(case: Case) -> dict[str, Any]:
    """Both matrices dequantised before the product."""
    left, right = _real(case, "a") * _real(case, "scale_a"), _real(case, "b") * _real(case, "scale_b")
    return _with_bias(case, left @ right)


def block_scaled_fp8_matmul(case: Case) -> dict[str, Any]:
    """Both matrices dequantised before the product, scales repeated over their blocks."""
    block, columns = case.sizes["S"], case.sizes["N"]
    left = _real(case, "a") * _real(case, "scale_a").repeat_interleave(block, dim=1)
    scales = _real(case, "scale_b").repeat_interleave(block, dim=0).repeat_interleave(block, dim=1)
    return {"out": left @ (_real(case, "b") * scales[:, :columns])}


REFERENCES: dict[str, Reference] = {
    "addmm": addmm,
    "block_scaled_fp8_matmul": block_scaled_fp8_matmul,
    "bmm": bmm,
    "grouped_matmul": grouped_matmul,
    "int8_matmul": int8_matmul,
    "linear": linear,
    "linear_gelu": linear_gelu,
    "linear_relu": linear_relu,
    "linear_silu": linear_silu,
    "scaled_fp8_matmul": scaled_fp8_matmul,
    "scaled_fp8_matmul_per_tensor": scaled_fp8_matmul_per_tensor,
    "w4a16_matmul": w4a16_matmul,
    "w8a16_matmul": w8a16_matmul,
    "w8a8_matmul": w8a8_matmul,
}
