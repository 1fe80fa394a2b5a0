"""Independent references: optimiser, by the optimisers of PyTorch themselves."""

from __future__ import annotations

from typing import Any

import torch
from torch.optim import AdamW
from torch.optim.sgd import sgd as sgd_step

from .cases import Case, Reference


def adamw(case: Case) -> dict[str, Any]:
    """`AdamW` with its state set, after one step less."""
    given = case.parameters
    param = torch.nn.Parameter(torch.from_numpy(case.input("param")))
    param.grad = torch.from_numpy(case.input("grad"))
    optimiser = AdamW(
        [param],
        lr=given["lr"],
        betas=(given["beta1"], given["beta2"]),
        eps=given["eps"],
        weight_decay=given["weight_decay"],
        foreach=False,
    )
    first, second = torch.from_numpy(case.input("exp_avg")), torch.from_numpy(case.input("exp_avg_sq"))
    state = {"step": torch.tensor(float(given["step"] - 1)), "exp_avg": first, "exp_avg_sq": second}
    optimiser.state[param] = state
    optimiser.step()
    return {"param": param.detach(), "exp_avg": state["exp_avg"], "exp_avg_sq": state["exp_avg_sq"]}


def lion(case: Case) -> dict[str, Any]:
    """The update of the paper (Chen et al. 2023, algorithm 2), written with `sign` and `add`."""
    given = case.parameters
    param, grad, moment = (torch.from_numpy(case.input(name)) for name in ("param", "grad", "exp_avg"))
    direction = torch.sign(torch.add(given["beta1"] * moment, grad, alpha=1 - given["beta1"]))
    decayed = param * (1 - given["lr"] * given["weight_decay"])
    blended = torch.add(given["beta2"] * moment, grad, alpha=1 - given["beta2"])
    return {"param": decayed - given["lr"] * direction, "exp_avg": blended}


def sgd(case: Case) -> dict[str, Any]:
    """The function behind `SGD`, which takes any dampening beside nesterov."""
    given = case.parameters
    names = ("param", "grad", "momentum_buffer")
    param, grad, buffer = (torch.from_numpy(case.input(name)) for name in names)
    sgd_step(
        [param],
        [grad],
        [buffer],
        foreach=False,
        fused=False,
        weight_decay=given["weight_decay"],
        momentum=given["momentum"],
        lr=given["lr"],
        dampening=given["dampening"],
        nesterov=given["nesterov"],
        maximize=False,
    )
    return {"param": param, "momentum_buffer": buffer}


REFERENCES: dict[str, Reference] = {"adamw": adamw, "lion": lion, "sgd": sgd}
