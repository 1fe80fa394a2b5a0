"""Checks the gradients of a callable: its own by the framework, against those of the reference."""

from __future__ import annotations

import dataclasses
import inspect
import json
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from gpuemu import _native
from gpuemu._runs.callable import Bridge
from gpuemu._runs.op_run import DISCIPLINES, Plan, Progress
from gpuemu._runs.signature import accepted
from gpuemu.custom_op import CustomOp
from gpuemu.frameworks.base import BaseAdapter
from gpuemu.frameworks.registry import adapter as adapter_of
from gpuemu.reports import CheckReport

if TYPE_CHECKING:
    from gpuemu.checking import Check

_PREFIX = "grad_"


def check_gradients(
    run: Check, report: CheckReport, plan: Plan, minimize: bool, progress: Progress | None
) -> CheckReport:
    """Try the gradients of a callable, and return its report with theirs.

    The upstream gradient is drawn like every other input: a kernel that is right for a gradient of ones only,
    as `sum().backward()` has it, does not pass.
    """
    if run.adapter.name == "numpy":
        raise TypeError(
            "check_backward needs a framework that differentiates: give framework='pytorch', 'jax' or "
            "'tensorflow'; a backward pass written in NumPy is an op of its own, see gpuemu.op"
        )
    takes = accepted(run.function)
    forward = json.loads(run.ready().describe())
    optional = [tensor["name"] for tensor in forward["inputs"] if tensor["optional"]]
    named = [name for name in optional if takes["any"] or name in takes["names"]]
    ready = run.ready().backward(named)
    described = json.loads(ready.describe())
    if isinstance(run.op, CustomOp) and run.op.gradient is not None:
        ready = _with_own_gradient(run.op, run.op.gradient, described, run.options())
    function = _Backward(run.function, run.adapter, described)
    missing = [f"the gradient of '{name}' is not checked" for name in optional if name not in named]
    found = run.perform(
        plan, minimize, progress, name=described["name"], ready=ready, function=function, allow=DISCIPLINES
    )
    found = dataclasses.replace(found, warnings=[*found.warnings, *missing])
    return dataclasses.replace(report, backward=found)


def _with_own_gradient(
    op: CustomOp, gradient: Callable[..., Any], described: Mapping[str, Any], options: str
) -> _native.ReadyOp:
    bridge = Bridge(gradient, adapter_of("numpy"), allowed=DISCIPLINES)
    takes = json.dumps(accepted(gradient))
    name, signature = described["name"], described["signature"]
    return _native.ReadyOp.custom(name, signature, bridge, takes, list(op.dtypes), options)


class _Backward:
    """The gradients of a function as a function: inputs and upstream gradients in, gradients out."""

    def __init__(
        self, function: Callable[..., Any], adapter: BaseAdapter, described: Mapping[str, Any]
    ) -> None:
        self.function, self.adapter = function, adapter
        self.takes = accepted(function)
        self.wanted = [_forward_name(tensor["name"]) for tensor in described["outputs"]]
        tensors = described["inputs"]
        # The upstream gradients come after the inputs of the op itself.
        count = sum(1 for tensor in tensors if tensor["name"].startswith(_PREFIX))
        self.upstream = [tensor["name"] for tensor in tensors[len(tensors) - count :]]
        self.__signature__ = _signature(tensors, described["parameters"], self.takes)
        self.__name__ = getattr(function, "__name__", type(function).__name__)

    def __call__(self, **given: Any) -> Any:
        upstream = [given.pop(name) for name in self.upstream]
        owned = {name: value for name, value in given.items() if self.adapter.owns(value)}
        keywords = {name: value for name, value in given.items() if name not in owned}

        def forward(**tensors: Any) -> Any:
            style = _native.call_style(json.dumps(self.takes), list(tensors))
            if style == "keywords":
                return self.function(**tensors, **keywords)
            if style == "dictionary":
                return self.function(tensors, **keywords)
            return self.function(*tensors.values(), **keywords)

        gradient = upstream[0] if len(upstream) == 1 else upstream
        found = self.adapter.gradients(forward, owned, self.wanted, gradient)
        return found[0] if len(found) == 1 else tuple(found)


def _forward_name(gradient: str) -> str:
    return gradient.removeprefix(_PREFIX)


def _signature(
    tensors: Sequence[Mapping[str, Any]], parameters: Sequence[str], takes: Mapping[str, Any]
) -> inspect.Signature:
    kind = inspect.Parameter.KEYWORD_ONLY
    made = []
    for tensor in tensors:
        # An optional input that the function does not take must not be drawn for its gradient either.
        taken = takes["any"] or tensor["name"] in takes["names"] or not takes["names"]
        if not tensor["optional"] or taken:
            demanded = not tensor["optional"] or tensor["name"] in takes["required"]
            default = inspect.Parameter.empty if demanded else None
            made.append(inspect.Parameter(tensor["name"], kind, default=default))
    for name in parameters:
        if takes["any"] or name in takes["names"]:
            made.append(inspect.Parameter(name, kind, default=None))
    return inspect.Signature(made)
