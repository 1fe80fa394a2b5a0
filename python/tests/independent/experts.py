"""Independent references: routing, permutation and combination of experts."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
import torch.nn.functional as functional

from .cases import Array, Case, Reference


def _tensor(case: Case, name: str) -> torch.Tensor:
    return torch.from_numpy(case.input(name))


def _chosen(case: Case, logits: torch.Tensor, probabilities: torch.Tensor) -> dict[str, Any]:
    """Return the k largest, by the logits, whose differences float64 never loses."""
    k = case.parameters["k"]
    ids = torch.sort(logits, dim=-1, descending=True, stable=True).indices[:, :k]
    weights = torch.gather(probabilities, 1, ids)
    if case.parameters["renormalize"]:
        weights = weights / weights.sum(dim=-1, keepdim=True)
    return {"topk_weights": weights, "topk_ids": ids}


def moe_topk_softmax(case: Case) -> dict[str, Any]:
    """Softmax, then the largest."""
    logits = _tensor(case, "gating_output")
    return _chosen(case, logits, torch.softmax(logits, dim=-1))


def grouped_topk(case: Case) -> dict[str, Any]:
    """The largest of the groups with the largest maxima."""
    logits = _tensor(case, "gating_output")
    tokens, experts = logits.shape
    groups, taken = case.parameters["num_expert_group"], case.parameters["topk_group"]
    maxima = logits.reshape(tokens, groups, experts // groups).amax(dim=-1)
    best = torch.sort(maxima, dim=-1, descending=True, stable=True).indices[:, :taken]
    chosen = torch.zeros(tokens, groups, dtype=torch.bool).scatter_(1, best, value=True)
    masked = logits.masked_fill(~chosen.repeat_interleave(experts // groups, dim=1), -torch.inf)
    return _chosen(case, masked, torch.softmax(logits, dim=-1))


def moe_permute(case: Case) -> dict[str, Any]:
    """A stable argsort of the experts."""
    ids = case.input("topk_ids")
    order = np.argsort(ids.reshape(-1), kind="stable")
    experts = np.arange(case.parameters["num_experts"] + 1)
    return {
        "permuted": case.input("hidden")[order // ids.shape[1]],
        "row_id": order,
        "expert_offsets": (ids.reshape(-1, 1) < experts).sum(axis=0),
    }


def moe_unpermute(case: Case) -> dict[str, Any]:
    """The inverse permutation, and a weighted sum."""
    weights = case.input("topk_weights")
    tokens, choices = weights.shape
    permuted = case.input("permuted")
    with np.errstate(all="ignore"):
        rows = permuted[np.argsort(case.input("row_id"))].reshape(tokens, choices, permuted.shape[1])
        return {"out": (weights[:, :, None] * rows).sum(axis=1)}


def moe_align_block_size(case: Case) -> dict[str, Any]:
    """Expert by expert, block by block."""
    ids = case.input("topk_ids").reshape(-1)
    block, experts = case.parameters["block_size"], case.parameters["num_experts"]
    token_ids = np.full(ids.size + experts * (block - 1), ids.size)
    expert_ids = np.zeros(-(-token_ids.size // block))
    end = 0
    for expert in range(experts):
        (entries,) = np.nonzero(ids == expert)
        for start in range(0, entries.size, block):
            part = entries[start : start + block]
            token_ids[end : end + part.size] = part
            expert_ids[end // block] = expert
            end += block
    return {"sorted_token_ids": token_ids, "expert_ids": expert_ids, "num_tokens_post_pad": np.array([end])}


def _expert(x: torch.Tensor, w1: torch.Tensor, w2: torch.Tensor) -> torch.Tensor:
    gate, up = functional.linear(x, w1).chunk(2)
    return functional.linear(functional.silu(gate) * up, w2)


def fused_moe(case: Case) -> dict[str, Any]:
    """A loop over tokens and their experts."""
    hidden, w1, w2 = (_tensor(case, name) for name in ("hidden", "w1", "w2"))
    weights, ids = _tensor(case, "topk_weights"), case.input("topk_ids")
    out: Array = np.zeros(hidden.shape)
    for token in range(hidden.shape[0]):
        chosen = [_expert(hidden[token], w1[expert], w2[expert]) for expert in ids[token]]
        out[token] = (weights[token][:, None] * torch.stack(chosen)).sum(dim=0)
    return {"out": out}


REFERENCES: dict[str, Reference] = {
    "fused_moe": fused_moe,
    "grouped_topk": grouped_topk,
    "moe_align_block_size": moe_align_block_size,
    "moe_permute": moe_permute,
    "moe_topk_softmax": moe_topk_softmax,
    "moe_unpermute": moe_unpermute,
}
