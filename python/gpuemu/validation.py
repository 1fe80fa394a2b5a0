"""`gpuemu.validate`: the verdict on one output that was computed already."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from typing import Any

from gpuemu._arrays.numbers import json_value
from gpuemu._client.project import project_reference
from gpuemu._runs.settings import Settings, Tolerance, check_op, opened
from gpuemu.custom_op import CustomOp
from gpuemu.errors import ValidationError
from gpuemu.frameworks.registry import adapter_for
from gpuemu.precision import Precision
from gpuemu.results import ValidationResult


def validate(
    op: str | CustomOp,
    inputs: Mapping[str, Any] | Sequence[Any],
    output: Any,
    *,
    kwargs: Mapping[str, Any] | None = None,
    precision: Precision | Mapping[str, Any] | str | None = None,
    tolerance: Tolerance | None = None,
    invariants: Sequence[str] = (),
    project: str | os.PathLike[str] | None = None,
    raises: bool = False,
) -> ValidationResult:
    """Judge an output by the inputs it was computed from: arrays of NumPy, PyTorch, JAX or TensorFlow.

    `inputs` are by name, or in the order of the op; `output` is an array, or several by name or as a tuple;
    `kwargs` are the op's parameters, and inputs that were given by name.
    One output says less than `gpuemu.check`, which runs the function itself: what needs a second run is not
    checked.
    """
    check_op(op)
    if tolerance is None and isinstance(op, CustomOp):
        tolerance = op.tolerance
    settings = Settings(precision=precision, tolerance=tolerance, invariants=invariants)
    options = settings.options(project_reference(project), None)
    ready = opened(op, options)
    described = json.loads(ready.describe())
    names = [tensor["name"] for tensor in described["inputs"]]
    given = _named(inputs, names, "input")
    arguments = dict(kwargs or {})
    given.update((name, arguments.pop(name)) for name in names if name in arguments)
    outputs = output if isinstance(output, Mapping | tuple) else (output,)
    returned = _named(outputs, [tensor["name"] for tensor in described["outputs"]], "output")
    parameters = json.dumps(arguments, default=json_value)
    text = ready.validate(_handed(given, "input"), _handed(returned, "output"), parameters)
    result = ValidationResult.from_json(json.loads(text))
    if raises and not result.passed:
        raise ValidationError(result.summary, result)
    return result


def _named(values: Mapping[str, Any] | Sequence[Any], names: Sequence[str], what: str) -> dict[str, Any]:
    if isinstance(values, Mapping):
        return dict(values)
    if not isinstance(values, list | tuple):
        kind = type(values).__name__
        raise TypeError(f"{what}s are a {kind}; give a dict of arrays by name, or a list in the op's order")
    if len(values) > len(names):
        known = ", ".join(names)
        raise ValueError(f"{len(values)} {what}s were given, but the op has {len(names)}: {known}")
    return dict(zip(names, values, strict=False))


def _handed(arrays: Mapping[str, Any], what: str) -> list[tuple[str, Any]]:
    handed = []
    for name, value in arrays.items():
        if value is None:
            continue
        try:
            data = adapter_for(value).to_tensor_data(value, name)
        except TypeError as error:
            words = str(error).removeprefix(f"output {name!r} ")
            raise TypeError(f"{what} {name!r}: {words}") from error
        handed.append((name, (data.memory, data.dtype, list(data.shape), list(data.strides), data.offset)))
    return handed
