"""Projects for campaigns: ops in Python, right, wrong and slow, and a compiled kernel."""

from __future__ import annotations

from pathlib import Path
from typing import Any

_CORPUS = Path(__file__).resolve().parents[2] / "lab/corpus/ptx"

CONFIGURATION = """
[project]
name = "campaign"
framework = "numpy"

[[ops]]
name = "relu"
module = "kernels.activations"

[[ops]]
name = "softmax"
module = "kernels.softmax"

[[kernels]]
name = "row_softmax"
source = "softmax_float32_64.ptx"
grid = ["rows(input)"]
block = [128]
args = ["out", "input", "H", "null", "null"]
variants = [
  { when = "next_pow2(H) == 64 && numel(out) > 0", ptx = "softmax_float32_64.ptx", shared = 8 },
]

[[ops]]
name = "compiled"
op = "softmax"
kernel = "row_softmax"
dtypes = ["float32"]
"""

_ACTIVATIONS = """
import os
import time

import numpy as np


def relu(input):
    time.sleep(float(os.environ.get("CAMPAIGN_SLOWLY", "0")))
    return np.maximum(input, 0)
"""

_SOFTMAX = """
import numpy as np


def softmax(input):
    # Wrong: the last, partial tile is no part of the sum.
    wide = input.astype(np.float64)
    shifted = np.exp(wide - wide.max(-1, keepdims=True, initial=-np.inf))
    tiles = shifted[..., : max(input.shape[-1] // 64 * 64, min(input.shape[-1], 64))]
    return (shifted / tiles.sum(-1, keepdims=True)).astype(input.dtype)
"""


def write_project(folder: Path) -> Path:
    """Write the project into a folder."""
    (folder / "kernels").mkdir(parents=True, exist_ok=True)
    (folder / "gpuemu.toml").write_text(CONFIGURATION)
    (folder / "kernels/activations.py").write_text(_ACTIVATIONS)
    (folder / "kernels/softmax.py").write_text(_SOFTMAX)
    name = "softmax_float32_64.ptx"
    (folder / name).write_bytes((_CORPUS / name).read_bytes())
    return folder


def verdict(report: dict[str, Any]) -> dict[str, Any]:
    """Return what a report says, without when and where it was made."""
    return {name: _plain(value) for name, value in report.items() if name not in _OF_ONE_RUN}


_OF_ONE_RUN = ("run", "time", "seconds", "config")


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _plain(inner) for name, inner in value.items() if name not in _OF_ONE_RUN}
    if isinstance(value, list):
        return [_plain(inner) for inner in value]
    return value
