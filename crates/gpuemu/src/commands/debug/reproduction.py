"""Run one case of an op again and compare what it returns with what was expected, without gpuemu.

Exit status 1: it is still wrong. 0: it is right. 2: it could not be run.

It needs NumPy, ml_dtypes for bfloat16 and fp8, and whatever the op needs. The project is looked for where it
was, or in the folder given as argument.
"""

import base64
import importlib
import inspect
import json
import os
import subprocess
import sys

import numpy as np


def main(case):
    """Run the case twice, print how far off the outputs are, and return the exit status."""
    folder = os.path.dirname(os.path.abspath(__file__))
    root = os.path.abspath(sys.argv[1] if len(sys.argv) > 1 else os.path.join(folder, case["root"]))
    run = run_module if "module" in case else run_script
    first, second = (run(case, root) for _ in range(2))
    wrong = [output["name"] for output in case["outputs"] if is_wrong(output, case, first, second)]
    print(f"{case['op']}: wrong" if wrong else f"{case['op']}: right")
    return 1 if wrong else 0


def stop(message):
    """End without a verdict."""
    print(message, file=sys.stderr)
    sys.exit(2)


def dtype_of(name):
    """Return NumPy's dtype of a name."""
    try:
        return np.dtype(name)
    except TypeError:
        pass
    try:
        # NumPy knows bfloat16 and fp8 once this package is imported.
        importlib.import_module("ml_dtypes")
    except ImportError:
        stop(f"{name} needs the Python package ml_dtypes")
    return np.dtype(name)


def array_of(tensor):
    """Return an input as it lay in memory, strides and gaps included."""
    dtype, storage = dtype_of(tensor["dtype"]), bytearray(base64.b64decode("".join(tensor["storage"])))
    if 0 in tensor["shape"]:
        return np.empty(tensor["shape"], dtype)
    strides = [stride * dtype.itemsize for stride in tensor["strides"]]
    return np.ndarray(tensor["shape"], dtype, storage, tensor["offset"] * dtype.itemsize, strides)


def numbers_of(lines, shape):
    """Return float64 numbers."""
    return np.ndarray(shape, np.float64, bytearray(base64.b64decode("".join(lines))))


def run_module(case, root):
    """Call the op's function the way gpuemu does."""
    if root not in sys.path:
        sys.path.insert(0, root)
    target, _, name = case["module"].partition(":")
    try:
        module = importlib.import_module(target)
    except ImportError as error:
        stop(f"{target} cannot be imported from {root}: {error}")
    names = [name] if name else [case["op"], "run"]
    function = next(filter(callable, (find(module, name) for name in names)), None)
    if function is None:
        stop(f"{target} has no function {' or '.join(names)}")
    inputs = {tensor["name"]: framework_array(case["framework"], tensor) for tensor in case["inputs"]}
    result = call(function, inputs, case["parameters"])
    if isinstance(result, dict):
        named = {str(name): value for name, value in result.items()}
    elif isinstance(result, (tuple, list)):
        named = {str(place): value for place, value in enumerate(result)}
    else:
        named = {"output": result}
    return in_order(case, {name: to_numpy(value) for name, value in named.items()})


def find(module, name):
    """Return what a dotted name stands for in a module."""
    for part in name.split("."):
        module = getattr(module, part, None)
    return module


def call(function, inputs, parameters):
    """Give inputs by keyword where the names fit, else all in one dict or in order; parameters by keyword."""
    try:
        known = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return function(*inputs.values())
    names = [one.name for one in known if one.kind in (one.POSITIONAL_OR_KEYWORD, one.KEYWORD_ONLY)]
    positional = [one for one in known if one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD)]
    required = [one.name for one in positional if one.default is one.empty]
    takes_any = any(one.kind is one.VAR_KEYWORD for one in known)
    takes_more = any(one.kind is one.VAR_POSITIONAL for one in known)
    keywords = {name: value for name, value in parameters.items() if takes_any or name in names}
    other_names = takes_any and required and not any(name in inputs for name in required)
    if not other_names and all(takes_any or name in names for name in inputs):
        return function(**inputs, **keywords)
    if len(required) == 1 and not takes_more and (len(inputs) > 1 or required == ["inputs"]):
        return function(inputs, **keywords)
    return function(*inputs.values(), **keywords)


def framework_array(framework, tensor):
    """Return an input as the project's framework has it."""
    array = array_of(tensor)
    if framework == "pytorch":
        torch = importlib.import_module("torch")
        dtype, strides = getattr(torch, tensor["dtype"]), tensor["strides"]
        if 0 in tensor["shape"]:
            return torch.empty(tensor["shape"], dtype=dtype)
        storage = bytearray(base64.b64decode("".join(tensor["storage"])))
        return torch.frombuffer(storage, dtype=dtype).as_strided(tensor["shape"], strides, tensor["offset"])
    if framework == "jax":
        importlib.import_module("jax").config.update("jax_enable_x64", True)
        return importlib.import_module("jax.numpy").asarray(array)
    if framework == "tensorflow":
        return importlib.import_module("tensorflow").constant(array)
    return array


def to_numpy(value):
    """Return a result as a NumPy array of its own dtype."""
    torch = sys.modules.get("torch")
    if torch is None or not isinstance(value, torch.Tensor):
        return np.asarray(value)
    name = str(value.dtype).removeprefix("torch.")
    tensor = value.detach().cpu().contiguous()
    if name == "bfloat16" or name.startswith("float8"):
        return tensor.view(torch.int16 if name == "bfloat16" else torch.uint8).numpy().view(dtype_of(name))
    return tensor.numpy()


LAUNCHER = """
import contextlib, runpy, sys
with contextlib.suppress(ImportError):
    import ml_dtypes
script, *folders = sys.argv[1:]
sys.argv, sys.path[:0] = [script], folders
runpy.run_path(script, run_name="__main__")
"""


def run_script(case, root):
    """Run the op's script: inputs and parameters as JSON on stdin, outputs as JSON on stdout."""
    script = os.path.join(root, case["script"])
    inputs = {}
    for tensor in case["inputs"]:
        data = base64.b64encode(array_of(tensor).tobytes()).decode("ascii")
        inputs[tensor["name"]] = {"data": data, "dtype": tensor["dtype"], "shape": tensor["shape"]}
    command = [script]
    if script.endswith(".py"):
        command = [sys.executable, "-c", LAUNCHER, script, os.path.dirname(script), root]
    document = json.dumps({"inputs": inputs, "kwargs": case["parameters"]}).encode()
    printed = subprocess.run(command, input=document, stdout=subprocess.PIPE, cwd=root, check=True).stdout
    outputs = {}
    for name, tensor in json.loads(printed)["outputs"].items():
        data = bytearray(base64.b64decode(tensor["data"]))
        outputs[name] = np.ndarray(tensor["shape"], dtype_of(tensor["dtype"]), data)
    return in_order(case, outputs)


def in_order(case, found):
    """Return the outputs by the op's names: a lone one has any name, those of a tuple go by place."""
    names = [output["name"] for output in case["outputs"]]
    by_place = len(names) == 1 or list(found) == [str(place) for place in range(len(found))]
    return dict(zip(names, found.values(), strict=False)) if by_place else found


def is_wrong(output, case, first, second):
    """Compare an output with what was expected, and the second run with the first."""
    name, shape = output["name"], tuple(output["shape"])
    if name not in first:
        print(f"{name}: missing; what came back: {', '.join(first) or 'nothing'}")
        return True
    found = first[name]
    if found.shape != shape or found.dtype.name != output["dtype"]:
        expected = f"{output['dtype']} {list(shape)}"
        print(f"{name}: {found.dtype.name} {list(found.shape)} came back, expected {expected}")
        return True
    actual = found.astype(np.float64)
    expected, allowed = numbers_of(output["expected"], shape), numbers_of(output["allowed"], shape)
    with np.errstate(all="ignore"):
        rounded = expected
        if found.dtype.kind not in "biu":
            rounded = expected.astype(found.dtype).astype(np.float64)
        right = (actual == rounded) | (np.isnan(actual) & np.isnan(rounded))
        difference = np.asarray(np.abs(actual - expected))
        difference[right & ~np.isfinite(difference)] = 0
        difference[np.isnan(difference)] = np.inf
        wrong = ~right & ~(difference <= allowed)
        if not case["check_nan"]:
            wrong &= ~(np.isnan(actual) & ~np.isnan(expected))
        if not case["check_inf"]:
            wrong &= ~(np.isinf(actual) & np.isfinite(expected))
    if wrong.size:
        # Among those that are wrong, if there are any.
        largest = np.unravel_index(np.argmax(np.where(wrong.any() & ~wrong, -1, difference)), shape)
        place = [int(coordinate) for coordinate in largest]
        print(f"{name}: {np.count_nonzero(wrong)} of {wrong.size} elements wrong")
        print(f"  largest difference {difference[largest]:.6g} (allowed {allowed[largest]:.6g}) at {place}:")
        print(f"  {actual[largest]}, expected {expected[largest]}")
    if wrong.any():
        return True
    again = second.get(name)
    if again is None or again.shape != shape or again.tobytes() != found.tobytes():
        print(f"{name}: the second run gave other bits")
        return not case["atomics"]
    return False
