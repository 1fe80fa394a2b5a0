"""Independent references: attention."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch.nn import functional

from .cases import Case, Reference


def _visible(case: Case, queries: int, keys: int) -> torch.Tensor:
    query, key = torch.arange(queries)[:, None], torch.arange(keys)[None, :]
    window = case.parameters["window"]
    visible = torch.ones((queries, keys), dtype=torch.bool)
    if "mask" in case.inputs:
        visible = torch.from_numpy(case.input("mask")).clone()
    if case.parameters["bottom_right"]:
        query = query + keys - queries
    if case.parameters["causal"] or window > 0:
        visible &= key <= query
    if window > 0:
        visible &= query - key < window
    return visible


def attention(case: Case) -> dict[str, Any]:
    """`scaled_dot_product_attention` of PyTorch; its parts where there is a softcap, which it lacks."""
    q, k, v = (torch.from_numpy(case.input(name)) for name in ("q", "k", "v"))
    groups = case.sizes["G"]
    k, v = k.repeat_interleave(groups, dim=1), v.repeat_interleave(groups, dim=1)
    scale = case.parameters["scale"] or 1.0 / math.sqrt(q.shape[-1])
    softcap, visible = case.parameters["softcap"], _visible(case, q.shape[2], k.shape[2])
    scores = torch.einsum("bhmd,bhnd->bhmn", q, k) * scale
    if softcap > 0.0:
        scores = softcap * torch.tanh(scores / softcap)
    scores = scores.masked_fill(~visible, -math.inf)
    if softcap > 0.0:
        out = torch.softmax(scores, dim=-1) @ v
    else:
        out = functional.scaled_dot_product_attention(q, k, v, attn_mask=visible, scale=scale)
    # PyTorch gives 0 for a row of nothing but -Inf, whose softmax is NaN.
    blind = (scores == -math.inf).all(dim=-1)
    out[blind] = 0.0 if case.parameters["masked_rows_zero"] else math.nan
    return {"out": out, "lse": torch.logsumexp(scores, dim=-1)}


def rope(case: Case) -> dict[str, Any]:
    """As written in most models: x*cos + rotated(x)*sin, with angles repeated for both of a pair."""
    x, position = torch.from_numpy(case.input("input")), torch.from_numpy(case.input("position")).double()
    pairs = case.sizes["P"]
    frequencies = case.parameters["base"] ** -(torch.arange(pairs, dtype=torch.float64) / max(pairs, 1))
    angles = position[:, :, None, None] * frequencies
    if case.parameters["interleaved"]:
        angles = angles.repeat_interleave(2, dim=-1)
        rotated = torch.stack([-x[..., 1::2], x[..., 0::2]], dim=-1).flatten(-2)
    else:
        angles = torch.cat([angles, angles], dim=-1)
        rotated = torch.cat([-x[..., pairs:], x[..., :pairs]], dim=-1)
    return {"out": x * torch.cos(angles) + rotated * torch.sin(angles)}


REFERENCES: dict[str, Reference] = {"attention": attention, "rope": rope}
