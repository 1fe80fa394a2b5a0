"""What the gradients of all frameworks have in common: which outputs and inputs take part."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from gpuemu.frameworks.base import NotConnectedError


def as_tuple(value: Any) -> tuple[Any, ...]:
    """Return the outputs of a function as a tuple, also where there is only one."""
    return tuple(value) if isinstance(value, (list, tuple)) else (value,)


def check_wanted(inputs: Mapping[str, Any], wanted: Sequence[str]) -> None:
    """Refuse gradients of what is no input."""
    if not wanted:
        raise ValueError("no input is named whose gradient is wanted")
    if unknown := [name for name in wanted if name not in inputs]:
        known = ", ".join(inputs)
        raise ValueError(f"no input is called {', '.join(map(repr, unknown))}; the inputs: {known}")


def upstream_of(outputs: Sequence[Any], upstream: Any) -> dict[int, Any]:
    """Return the upstream gradients by the positions of their outputs, left out where they are None."""
    given = as_tuple(upstream)
    if len(given) != len(outputs):
        raise ValueError(f"{len(given)} upstream gradients for {len(outputs)} outputs of the function")
    chosen = {index: gradient for index, gradient in enumerate(given) if gradient is not None}
    if not chosen:
        raise ValueError("every upstream gradient is None: there is nothing to differentiate")
    for index, gradient in chosen.items():
        shape, expected = tuple(gradient.shape), tuple(outputs[index].shape)
        if shape != expected:
            raise ValueError(
                f"the upstream gradient of output {index} has shape {shape}, the output {expected}"
            )
    return chosen


def refuse_unconnected(positions: Iterable[int], wanted: Sequence[str]) -> None:
    """Refuse outputs that no gradient flows from."""
    if cut := list(positions):
        outputs = ", ".join(map(str, cut))
        raise NotConnectedError(
            f"no gradient flows from output {outputs} of the function to its inputs {', '.join(wanted)}: "
            "the output is detached, not differentiable, or computed outside of the framework"
        )
