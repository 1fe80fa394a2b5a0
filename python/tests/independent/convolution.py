"""Independent references: convolutions, pools and scans along a sequence."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.nn import functional

from .cases import Case, Reference

Tensor = torch.Tensor


def tensors(case: Case, *names: str) -> list[Any]:
    """Return inputs as tensors, `None` where an optional one is absent."""
    return [torch.from_numpy(case.inputs[name]) if name in case.inputs else None for name in names]


def convolution(case: Case, function: Callable[..., Tensor]) -> dict[str, Any]:
    """`conv1d` or `conv2d` of PyTorch."""
    data, weight, bias = tensors(case, "input", "weight", "bias")
    named = {name: case.parameters[name] for name in ("stride", "padding", "dilation")}
    return {"out": function(data, weight, bias, groups=case.sizes["G"], **named)}


def conv1d(case: Case) -> dict[str, Any]:
    """`torch.nn.functional.conv1d`."""
    return convolution(case, functional.conv1d)


def conv2d(case: Case) -> dict[str, Any]:
    """`torch.nn.functional.conv2d`."""
    return convolution(case, functional.conv2d)


def pool(case: Case, function: Callable[..., Tensor], *flags: str) -> dict[str, Any]:
    """Apply a pool of PyTorch, which refuses tensors without elements."""
    (data,) = tensors(case, "input")
    if data.numel() == 0:
        return {"out": torch.zeros(case.expected["out"].values.shape, dtype=torch.float64)}
    named = {name: case.parameters[name] for name in ("kernel_size", "stride", "padding", *flags)}
    return {"out": function(data, **named)}


def max_pool1d(case: Case) -> dict[str, Any]:
    """`torch.nn.functional.max_pool1d`."""
    return pool(case, functional.max_pool1d)


def max_pool2d(case: Case) -> dict[str, Any]:
    """`torch.nn.functional.max_pool2d`."""
    return pool(case, functional.max_pool2d)


def avg_pool1d(case: Case) -> dict[str, Any]:
    """`torch.nn.functional.avg_pool1d`."""
    return pool(case, functional.avg_pool1d, "count_include_pad")


def avg_pool2d(case: Case) -> dict[str, Any]:
    """`torch.nn.functional.avg_pool2d`."""
    return pool(case, functional.avg_pool2d, "count_include_pad")


def activated(case: Case, values: Tensor) -> Tensor:
    """Apply silu where the case says so."""
    return functional.silu(values) if case.parameters["silu_activation"] else values


def causal_conv1d(case: Case) -> dict[str, Any]:
    """Depthwise `conv1d` of the sequence with its history in front."""
    x, weight, bias, initial = tensors(case, "x", "weight", "bias", "initial_states")
    width = case.sizes["K"]
    if initial is None:
        initial = torch.zeros(*x.shape[:2], width - 1, dtype=x.dtype)
    history = torch.cat([initial, x], dim=-1)
    last = history[..., x.shape[-1] :]
    if x.numel() == 0:
        return {"out": x, "final_states": last}
    out = functional.conv1d(history, weight[:, None, :], bias, groups=case.sizes["D"])
    return {"out": activated(case, out), "final_states": last}


def causal_conv1d_update(case: Case) -> dict[str, Any]:
    """`torch.roll` of the state, and its product with the kernels."""
    x, state, weight, bias = tensors(case, "x", "conv_state", "weight", "bias")
    state = torch.roll(state, -1, -1)
    state[..., -1] = x
    out = torch.einsum("bdk,dk->bd", state, weight)
    return {"out": activated(case, out if bias is None else out + bias), "conv_state": state}


def step_sizes(delta: Tensor, bias: Any, softplus: bool) -> Tensor:
    """Return the step sizes of a state space model; `bias` has the shape of `delta`, but for sizes of 1."""
    delta = delta if bias is None else delta + bias
    return functional.softplus(delta) if softplus else delta


def selective_scan(case: Case) -> dict[str, Any]:
    """Run the recurrence of the paper, all channels and states of a step at once."""
    u, delta, a, b, c, d, z, bias = tensors(case, "u", "delta", "A", "B", "C", "D", "z", "delta_bias")
    bias = None if bias is None else bias[None, :, None]
    delta = step_sizes(delta, bias, case.parameters["delta_softplus"])
    state = torch.zeros(*u.shape[:2], a.shape[1], dtype=u.dtype)
    outputs = []
    for time in range(u.shape[-1]):
        step = delta[..., time, None]
        state = torch.exp(step * a) * state + step * b[:, None, :, time] * u[..., time, None]
        outputs.append((state * c[:, None, :, time]).sum(-1))
    out = torch.stack(outputs, -1)
    out = out if d is None else out + u * d[:, None]
    return {"out": out if z is None else out * functional.silu(z)}


def selective_state_update(case: Case) -> dict[str, Any]:
    """One step of the recurrence."""
    state, x, dt, a, b, c, d, z, bias = tensors(case, "state", "x", "dt", "A", "B", "C", "D", "z", "dt_bias")
    step = step_sizes(dt, bias, case.parameters["dt_softplus"])[..., None]
    state = torch.exp(step * a) * state + step * b[:, None, :] * x[..., None]
    out = (state * c[:, None, :]).sum(-1)
    out = out if d is None else out + x * d
    return {"out": out if z is None else out * functional.silu(z), "state": state}


REFERENCES: dict[str, Reference] = {
    "avg_pool1d": avg_pool1d,
    "avg_pool2d": avg_pool2d,
    "causal_conv1d": causal_conv1d,
    "causal_conv1d_update": causal_conv1d_update,
    "conv1d": conv1d,
    "conv2d": conv2d,
    "max_pool1d": max_pool1d,
    "max_pool2d": max_pool2d,
    "selective_scan": selective_scan,
    "selective_state_update": selective_state_update,
}
