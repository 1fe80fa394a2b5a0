"""Independent references: elements moved, chosen and counted by index."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
import torch.nn.functional as functional

from .cases import Case, Reference


def _tensor(case: Case, name: str) -> torch.Tensor:
    return torch.from_numpy(case.input(name))


def embedding(case: Case) -> dict[str, Any]:
    """`torch.nn.functional.embedding`, which leaves the row of the padding index as it is."""
    weight = _tensor(case, "weight")
    padding = case.parameters["padding_idx"]
    return {"out": functional.embedding(_tensor(case, "indices"), weight, None if padding < 0 else padding)}


def embedding_backward(case: Case) -> dict[str, Any]:
    """What autograd makes of an embedding."""
    parameters = case.parameters
    gradient = _tensor(case, "grad_output")
    weight = torch.zeros(
        parameters["num_weights"], gradient.shape[1], dtype=torch.float64, requires_grad=True
    )
    padding = None if parameters["padding_idx"] < 0 else parameters["padding_idx"]
    out = functional.embedding(
        _tensor(case, "indices"),
        weight,
        padding,
        scale_grad_by_freq=parameters["scale_grad_by_freq"],
    )
    (grad_weight,) = torch.autograd.grad(out, weight, gradient)
    return {"grad_weight": grad_weight}


def gather(case: Case) -> dict[str, Any]:
    """`torch.gather`."""
    return {"out": torch.gather(_tensor(case, "input"), 1, _tensor(case, "index"))}


def index_select(case: Case) -> dict[str, Any]:
    """`torch.index_select`."""
    return {"out": torch.index_select(_tensor(case, "input"), 0, _tensor(case, "index"))}


def scatter(case: Case) -> dict[str, Any]:
    """`Tensor.scatter_`."""
    return {"input": _tensor(case, "input").clone().scatter_(1, _tensor(case, "index"), _tensor(case, "src"))}


def index_copy(case: Case) -> dict[str, Any]:
    """`Tensor.index_copy_`."""
    return {
        "input": _tensor(case, "input")
        .clone()
        .index_copy_(0, _tensor(case, "index"), _tensor(case, "source"))
    }


def scatter_add(case: Case) -> dict[str, Any]:
    """`torch.scatter_add`."""
    return {"out": torch.scatter_add(_tensor(case, "input"), 1, _tensor(case, "index"), _tensor(case, "src"))}


def _index_add(case: Case) -> torch.Tensor:
    values, index, source = _tensor(case, "input"), _tensor(case, "index"), _tensor(case, "source")
    return torch.index_add(values, 0, index, source, alpha=case.parameters["alpha"])


def index_add(case: Case) -> dict[str, Any]:
    """`torch.index_add`."""
    return {"out": _index_add(case)}


def index_add_in_place(case: Case) -> dict[str, Any]:
    """`Tensor.index_add_`."""
    return {"input": _index_add(case)}


def _sorted(case: Case, descending: bool) -> tuple[torch.Tensor, torch.Tensor]:
    return torch.sort(_tensor(case, "input"), dim=-1, descending=descending, stable=True)


def sort(case: Case) -> dict[str, Any]:
    """`torch.sort`, stable in any case."""
    values, indices = _sorted(case, case.parameters["descending"])
    return {"values": values, "indices": indices}


def argsort(case: Case) -> dict[str, Any]:
    """The indices of `torch.sort`."""
    return {"indices": _sorted(case, case.parameters["descending"])[1]}


def topk(case: Case) -> dict[str, Any]:
    """The values of `torch.topk`; the first indices of a stable sort, since its own are not."""
    k, largest = case.parameters["k"], case.parameters["largest"]
    return {
        "values": torch.topk(_tensor(case, "input"), k, dim=-1, largest=largest).values,
        "indices": _sorted(case, largest)[1][..., :k],
    }


def histogram(case: Case) -> dict[str, Any]:
    """Bins by exact edges, with NumPy's search: elements on the upper end belong to the last bin."""
    bins, low, high = case.parameters["bins"], case.parameters["min"], case.parameters["max"]
    values = case.input("input")
    return {"out": np.histogram(values[(values >= low) & (values <= high)], bins=bins, range=(low, high))[0]}


def bincount(case: Case) -> dict[str, Any]:
    """`torch.bincount`."""
    return {"out": torch.bincount(_tensor(case, "input"), minlength=case.parameters["minlength"])}


def one_hot(case: Case) -> dict[str, Any]:
    """Rows of a unit matrix, which unlike `one_hot` takes no entries too."""
    classes = case.parameters["num_classes"]
    return {"out": np.eye(classes, dtype=np.int64)[case.input("input")]}


def transpose(case: Case) -> dict[str, Any]:
    """`torch.transpose`."""
    return {"out": _tensor(case, "input").transpose(-1, -2)}


def concat(case: Case) -> dict[str, Any]:
    """`numpy.concatenate`."""
    return {"out": np.concatenate([case.input("a"), case.input("b")], axis=-1)}


def pad(case: Case) -> dict[str, Any]:
    """`torch.nn.functional.pad`."""
    widths = (case.parameters["left"], case.parameters["right"])
    return {"out": functional.pad(_tensor(case, "input"), widths, value=case.parameters["value"])}


def roll(case: Case) -> dict[str, Any]:
    """`numpy.roll`."""
    return {"out": np.roll(case.input("input"), case.parameters["shifts"], axis=-1)}


def flip(case: Case) -> dict[str, Any]:
    """`torch.flip`."""
    return {"out": _tensor(case, "input").flip(-1)}


def masked_fill(case: Case) -> dict[str, Any]:
    """`torch.masked_fill`."""
    return {"out": _tensor(case, "input").masked_fill(_tensor(case, "mask"), case.parameters["value"])}


REFERENCES: dict[str, Reference] = {
    "argsort": argsort,
    "bincount": bincount,
    "concat": concat,
    "embedding": embedding,
    "embedding_backward": embedding_backward,
    "flip": flip,
    "gather": gather,
    "histogram": histogram,
    "index_add": index_add,
    "index_add_": index_add_in_place,
    "index_copy": index_copy,
    "index_select": index_select,
    "masked_fill": masked_fill,
    "one_hot": one_hot,
    "pad": pad,
    "roll": roll,
    "scatter": scatter,
    "scatter_add": scatter_add,
    "sort": sort,
    "topk": topk,
    "transpose": transpose,
}
