"""Independent references: attention over packed, paged and split keys, gradients, what prepares inputs."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from .cases import Case, Reference

Tensor = torch.Tensor


def _tensor(case: Case, name: str) -> Tensor:
    return torch.from_numpy(case.input(name))


def _scale(case: Case, width: int) -> float:
    given = float(case.parameters["scale"])
    return given if given != 0.0 else width**-0.5


def _attend(
    query: Tensor, key: Tensor, value: Tensor, scale: float, softcap: float = 0.0, bias: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """Attention of one head and its log-sum-exp; -Inf in `bias` hides a key."""
    scores = query @ key.T * scale
    if softcap > 0.0:
        scores = softcap * torch.tanh(scores / softcap)
    if bias is not None:
        # A hidden score is replaced, not added to.
        scores = torch.where(bias == -torch.inf, bias, scores + bias)
    return torch.softmax(scores, dim=-1) @ value, torch.logsumexp(scores, dim=-1)


def attention_varlen(case: Case) -> dict[str, Any]:
    """Each sequence and head on its own, masks built from positions."""
    q, k, v = _tensor(case, "q"), _tensor(case, "k"), _tensor(case, "v")
    starts_q, starts_k = case.input("cu_seqlens_q"), case.input("cu_seqlens_k")
    parameters = case.parameters
    groups, scale = case.sizes["G"], _scale(case, q.shape[-1])
    window = int(parameters["window"])
    out, lse = torch.zeros_like(q), torch.zeros(q.shape[1], q.shape[0], dtype=torch.float64)
    for b in range(len(starts_q) - 1):
        rows, columns = slice(starts_q[b], starts_q[b + 1]), slice(starts_k[b], starts_k[b + 1])
        m, n = int(starts_q[b + 1] - starts_q[b]), int(starts_k[b + 1] - starts_k[b])
        offset = n - m if parameters["bottom_right"] else 0
        distance = torch.arange(m)[:, None] + offset - torch.arange(n)[None, :]
        visible = torch.ones(m, n, dtype=torch.bool)
        if parameters["causal"] or window > 0:
            visible &= distance >= 0
        if window > 0:
            visible &= distance < window
        bias = torch.zeros(m, n, dtype=torch.float64).masked_fill(~visible, -torch.inf)
        blind = ~visible.any(dim=-1)
        for h in range(q.shape[1]):
            keys, values = k[columns, h // groups], v[columns, h // groups]
            result, logs = _attend(q[rows, h], keys, values, scale, float(parameters["softcap"]), bias)
            empty = 0.0 if parameters["masked_rows_zero"] else torch.nan
            out[rows, h] = torch.where(blind[:, None], empty, result)
            empty_log = torch.inf if parameters["masked_lse_positive"] else -torch.inf
            lse[h, rows] = torch.where(blind, empty_log, logs)
    return {"out": out, "lse": lse}


def _one_query_each(case: Case, q: Tensor, gathered: list[tuple[Tensor, Tensor]]) -> dict[str, Any]:
    """Attend for each sequence to keys and values [count, heads, width]."""
    groups, scale = case.sizes["G"], _scale(case, q.shape[-1])
    out, lse = torch.zeros_like(q), torch.zeros(q.shape[:2], dtype=torch.float64)
    for b, (keys, values) in enumerate(gathered):
        for h in range(q.shape[1]):
            row = q[b, h][None]
            result, logs = _attend(
                row, keys[:, h // groups], values[:, h // groups], scale, float(case.parameters["softcap"])
            )
            out[b, h], lse[b, h] = result[0], logs[0]
    return {"out": out, "lse": lse}


def decode_attention(case: Case) -> dict[str, Any]:
    """The cache cut to each sequence's length; splits change nothing."""
    k, v = _tensor(case, "k"), _tensor(case, "v")
    lengths = case.input("seq_lens")
    parts = [(k[b, :, :n].swapaxes(0, 1), v[b, :, :n].swapaxes(0, 1)) for b, n in enumerate(lengths)]
    return _one_query_each(case, _tensor(case, "q"), parts)


def paged_attention(case: Case) -> dict[str, Any]:
    """Pages taken by the table, flattened, cut to the length."""
    caches = _tensor(case, "key_cache"), _tensor(case, "value_cache")
    lengths = case.input("seq_lens")
    parts = []
    for b, table in enumerate(_tensor(case, "block_tables")):
        keys, values = (cache[table].flatten(0, 1)[: lengths[b]] for cache in caches)
        parts.append((keys, values))
    return {"out": _one_query_each(case, _tensor(case, "query"), parts)["out"]}


def attention_bias(case: Case) -> dict[str, Any]:
    """`scaled_dot_product_attention` written out, the bias added without a special case for -Inf."""
    query, bias = _tensor(case, "query"), _tensor(case, "attn_mask")
    groups = case.sizes["G"]
    key = _tensor(case, "key").repeat_interleave(groups, dim=1)
    value = _tensor(case, "value").repeat_interleave(groups, dim=1)
    scores = torch.einsum("bhmd,bhnd->bhmn", query, key) * _scale(case, query.shape[-1]) + bias
    return {
        "out": torch.softmax(scores, dim=-1) @ value,
        "lse": torch.logsumexp(scores, dim=-1),
    }


def merge_attention_states(case: Case) -> dict[str, Any]:
    """A softmax over splits of the log-sum-exps."""
    outs, lses = _tensor(case, "outs"), _tensor(case, "lses")
    lse = torch.logsumexp(lses, dim=0)
    out = (torch.softmax(lses, dim=0)[..., None] * outs).sum(dim=0)
    if case.parameters["masked_rows_zero"]:
        out = torch.where((lses == -torch.inf).all(dim=0)[..., None], 0.0, out)
    return {"out": out, "lse": lse}


def attention_backward(case: Case) -> dict[str, Any]:
    """Autograd of attention written out."""
    q, k, v = (_tensor(case, name).requires_grad_() for name in "qkv")
    scores = torch.einsum("bhmd,bhnd->bhmn", q, k) * _scale(case, q.shape[-1])
    if case.parameters["causal"]:
        visible = torch.ones(scores.shape[-2:], dtype=torch.bool).tril()
        scores = scores.masked_fill(~visible, -torch.inf)
    out = torch.softmax(scores, dim=-1) @ v
    grad_q, grad_k, grad_v = torch.autograd.grad(out, (q, k, v), _tensor(case, "grad_output"))
    return {"grad_q": grad_q, "grad_k": grad_k, "grad_v": grad_v}


def rope_cached(case: Case) -> dict[str, Any]:
    """`apply_rotary_pos_emb` of transformers, and its interleaved form, by stacking."""
    q = _tensor(case, "q")
    cos, sin = _tensor(case, "cos")[:, None], _tensor(case, "sin")[:, None]
    if case.parameters["interleaved"]:
        turned = torch.stack((-q[..., 1::2], q[..., ::2]), dim=-1).flatten(-2)
    else:
        first, second = q.chunk(2, dim=-1)
        turned = torch.cat((-second, first), dim=-1)
    return {"out": q * cos + turned * sin}


def rope_in_place(case: Case) -> dict[str, Any]:
    """Pairs as complex numbers would turn them, from rows of the table."""
    pairs = case.sizes["R"]
    angles = case.input("cos_sin_cache")[case.input("positions")]
    cos, sin = angles[:, None, :pairs], angles[:, None, pairs:]

    def turned(tensor: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        out = tensor.copy()
        if case.parameters["is_neox_style"]:
            first, second = slice(0, pairs), slice(pairs, 2 * pairs)
        else:
            first, second = slice(0, 2 * pairs, 2), slice(1, 2 * pairs, 2)
        x, y = tensor[..., first], tensor[..., second]
        out[..., first], out[..., second] = x * cos - y * sin, y * cos + x * sin
        return out

    with np.errstate(all="ignore"):
        return {"query": turned(case.input("query")), "key": turned(case.input("key"))}


def reshape_and_cache(case: Case) -> dict[str, Any]:
    """`index_copy` of the flattened pages."""
    slots = _tensor(case, "slot_mapping")
    outputs: dict[str, Any] = {}
    for name in ("key", "value"):
        cache = _tensor(case, f"{name}_cache")
        copied = cache.flatten(0, 1).index_copy(0, slots, _tensor(case, name))
        outputs[f"{name}_cache"] = copied.reshape(cache.shape)
    return outputs


REFERENCES: dict[str, Reference] = {
    "attention_backward": attention_backward,
    "attention_bias": attention_bias,
    "attention_varlen": attention_varlen,
    "decode_attention": decode_attention,
    "merge_attention_states": merge_attention_states,
    "paged_attention": paged_attention,
    "reshape_and_cache": reshape_and_cache,
    "rope_": rope_in_place,
    "rope_cached": rope_cached,
}
