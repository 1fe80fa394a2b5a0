"""What clamped_gate must return: reads a case as JSON from stdin, writes the outputs as JSON to stdout.

stdin:  {"inputs": {NAME: {"data": BASE64, "dtype": NAME, "shape": [...]}}, "kwargs": {NAME: VALUE}}
stdout: {"outputs": {NAME: {"data": BASE64, "dtype": NAME, "shape": [...]}}}

Floats arrive as float64. Whatever else is to be said goes to stderr.
"""

import base64
import json
import sys

import numpy as np


def decode(tensor):
    """Return the array that a tensor stands for."""
    return np.ndarray(tensor["shape"], tensor["dtype"], base64.b64decode(tensor["data"]))


def encode(array):
    """Return the tensor that stands for an array."""
    data = base64.b64encode(array.tobytes()).decode("ascii")
    return {"data": data, "dtype": array.dtype.name, "shape": list(array.shape)}


case = json.load(sys.stdin)
x, gate = (decode(case["inputs"][name]) for name in ("x", "gate"))
limit = case["kwargs"]["limit"]
with np.errstate(all="ignore"):
    out = gate * np.clip(x, -limit, limit)
json.dump({"outputs": {"out": encode(out)}}, sys.stdout)
