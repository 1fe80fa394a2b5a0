"""The pairs of the example projects: each is judged as its README does it, in copies of its folders."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from checking import SEED, run_pytest
from pair import ROOT, SIDES, Pair, Side
from project import run_project
from sanitizing import drawn, launched
from verdict import Verdict, row, short, unjudged

EXAMPLES = ROOT / "examples"
CASES = 40


@dataclass(frozen=True)
class Example:
    """A pair of an example, and the door by which it is judged."""

    name: str
    language: str
    door: str
    checks: tuple[str, ...]
    subject: str | tuple[str, str]
    """An op of the two projects, a test of `tests` and one of `wrong`, or the two sources of kernels."""


ALL = [
    Example("example_layernorm", "numpy", "test", ("value",), "layernorm"),
    Example("example_clamped_gate", "numpy", "test", ("value",), "clamped_gate"),
    Example("example_rmsnorm", "pytorch", "pytest", ("value",), ("test_backward", "test_backward")),
    Example("example_rope", "jax", "pytest", ("value",), ("test_rope[bfloat16]", "test_rope[bfloat16]")),
    Example(
        "example_cross_entropy",
        "tensorflow",
        "pytest",
        ("unexpected_infinity",),
        ("test_cross_entropy[float32]", "test_cross_entropy"),
    ),
    Example("example_layernorm", "triton", "launch-table", ("value",), "layernorm"),
    Example(
        "example_layernorm", "triton", "pytest", ("value",), ("test_layernorm[float32]", "test_layernorm")
    ),
    Example("example_softmax", "cuda", "launch-table", ("race",), "softmax"),
    Example(
        "example_softmax",
        "cuda",
        "sanitize",
        ("race",),
        ("kernels/softmax.cu", "wrong/softmax_without_barrier.cu"),
    ),
]

_SANITIZED = ["--grid", "16", "--block", "128"]
_SANITIZED_ARGUMENTS = ["f32:out:5x200", "f32:random:5x200", "i32:5", "i32:200"]


def judged(example: Example) -> dict[str, Any]:
    """Return what came of an example, as a row."""
    folder = EXAMPLES / example.language
    pair = Pair(example.name, example.language, folder, "", source="examples", checks=example.checks)
    unwanted = shutil.ignore_patterns("__pycache__", ".pytest_cache")
    with tempfile.TemporaryDirectory(prefix="gpuemu-twins-") as name:
        # The wrong project is in a folder of the right one, as in the repository.
        copy = Path(shutil.copytree(folder, Path(name, "project"), ignore=unwanted))
        try:
            verdicts = _verdicts(example, copy)
        except Exception as error:  # One example that cannot be run is no reason to leave the others out.
            trouble = unjudged(short(f"{type(error).__name__}: {error}"))
            verdicts = dict.fromkeys(SIDES, trouble)
        return row(pair, example.door, verdicts)


def _verdicts(example: Example, copy: Path) -> Mapping[Side, Verdict]:
    subject = example.subject
    if isinstance(subject, str):
        right, wrong = (run_project(folder, [subject], CASES)[subject] for folder in (copy, copy / "wrong"))
        return {"right": right, "wrong": wrong}
    if example.door == "sanitize":
        arguments = list(_SANITIZED)
        for place, argument in enumerate(_SANITIZED_ARGUMENTS):
            arguments += ["--arg", drawn(argument, copy.parent / f"in{place}.npy")]
        return {
            "right": launched(copy, "right", subject[0], arguments),
            "wrong": launched(copy, "wrong", subject[1], arguments),
        }
    missing = unjudged("pytest did not run it")
    seed = f"--gpuemu-seed={SEED}"
    return {
        "right": run_pytest(copy, [seed, "tests"], {}).get(subject[0], missing),
        "wrong": run_pytest(copy, [seed, "wrong"], {}).get(subject[1], missing),
    }
