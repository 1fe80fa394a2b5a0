"""The pairs of the grown corpus: `gpuemu corpus` judges them by launch tables and as functions of a project.

Those in Python go through the doors of Python too.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from pair import ROOT, Pair
from programs import gpuemu
from verdict import short

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib  # Which pytest brings.

GROWN = ROOT / "lab/corpus/grown"
CASES = 40
FOLDERS = {"numpy": "python", "triton": "triton", "cuda": "cuda"}


def door_of(language: str) -> str:
    """Return the door that `gpuemu corpus` is for the pairs of a language."""
    return "test" if language == "numpy" else "launch-table"


def _read(language: str) -> list[dict[str, Any]]:
    text = Path(GROWN, FOLDERS[language], "pairs.toml").read_text(encoding="utf-8")
    read: list[dict[str, Any]] = tomllib.loads(text)["pairs"]
    return read


def names(language: str) -> list[str]:
    """Return the names of the pairs in a language, in the order of their file."""
    return [pair["name"] for pair in _read(language)] if language in FOLDERS else []


def python_pairs() -> list[Pair]:
    """Return the pairs in Python as pairs for `gpuemu.check`."""
    return [_pair(written) for written in _read("numpy")]


def _pair(written: dict[str, Any]) -> Pair:
    module, _, right = written["right"].partition(":")
    op = written["op"]
    sizes = {dim: (size["min"], size["max"]) for dim, size in op.get("dims", {}).items()}
    return Pair(
        written["name"],
        "numpy",
        GROWN / FOLDERS["numpy"],
        module,
        {"right": right, "wrong": written["wrong"].partition(":")[2]},
        "grown",
        op=op["op"],
        dtypes=op["dtypes"],
        sizes=sizes,
        launches=op.get("launches"),
        checks=written["caught_by"],
    )


def judged(language: str, chosen: list[str]) -> list[dict[str, Any]]:
    """Return what `gpuemu corpus` makes of pairs, as rows."""
    arguments = ["corpus", "--set", "grown", "--quiet", "--cases", str(CASES), "--seed", "1"]
    for name in chosen:
        arguments += ["--kernel", name]
    _, report = gpuemu(ROOT, arguments)
    return [_row(pair, language) for pair in report["pairs"]]


def _row(pair: dict[str, Any], language: str) -> dict[str, Any]:
    right, wrong = pair["right"], pair["wrong"]
    # A rule about code reports it without a case: then there is nothing that could have failed.
    said = sorted([*wrong["checks"], *(f"lint/{rule}" for rule in wrong["lint"])])
    accused = sorted([*right["checks"], *(f"lint/{rule}" for rule in right["lint"])])
    not_run = right["not_run"] or wrong["not_run"]
    notes = [] if not_run is None else [short(f"not run: {not_run}")]
    if accused:
        notes.append(f"right twin: {', '.join(accused)}")
    if not said:
        notes.append("wrong twin: passed")
    return {
        "pair": pair["name"],
        "source": "grown",
        "language": language,
        "door": door_of(language),
        "caught": bool(said),
        "clean": not accused and not_run is None and right["cases"] > 0,
        "named": bool(pair["reported_by"]),
        "expected": pair["caught_by"],
        "said": said,
        "notes": notes,
    }
