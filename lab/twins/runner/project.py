"""The doors of a project: `gpuemu test` on Python functions, and on compiled kernels by launch tables."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from checking import CASES, SEED
from pair import COMPILED, SIDES, Pair, Side
from programs import gpuemu
from verdict import Verdict, of_op_report, short, unjudged


def by_project(pairs: Sequence[Pair]) -> dict[str, Mapping[Side, Verdict]]:
    """Judge pairs of one language as the ops of one project."""
    with tempfile.TemporaryDirectory(prefix="gpuemu-twins-") as name:
        folder = Path(name)
        write_project(pairs, folder)
        ops = [op_name(pair, side) for pair in pairs for side in SIDES]
        reports = run_project(folder, ops, CASES)
    return {pair.name: {side: reports[op_name(pair, side)] for side in SIDES} for pair in pairs}


def run_project(folder: Path, ops: Sequence[str], cases: int) -> dict[str, Verdict]:
    """Run ops of a project, and return the verdict on each."""
    arguments = ["test", "--no-daemon", "--quiet", "--no-minimize", "--parallel", "0"]
    arguments += ["--base-seed", str(SEED), "--iterations", str(cases)]
    for op in ops:
        arguments += ["--op", op]
    _, report = gpuemu(folder, arguments)
    if "ops" not in report:
        raise RuntimeError(f"gpuemu test did not run: {short(json.dumps(report))}")
    found = {op["op"]: of_op_report(op) for op in report["ops"]}
    return {op: found.get(op) or unjudged("gpuemu test did not run it") for op in ops}


def op_name(pair: Pair, side: Side) -> str:
    """Return the name that a twin has in the project."""
    return f"{pair.name}_{side}"


def write_project(pairs: Sequence[Pair], folder: Path) -> None:
    """Write pairs of one language as a project, as a user would write it."""
    language = pairs[0].language
    framework = "numpy" if language in COMPILED else language
    lines = ["[project]", 'name = "twins"', f"framework = {toml(framework)}"]
    for source in {pair.folder for pair in pairs}:
        for path in source.iterdir():
            if path.suffix in (".py", ".cu"):
                shutil.copy(path, folder / path.name)
    for pair in pairs:
        for side in SIDES:
            if language in COMPILED:
                lines += _kernel(pair, side)
            lines += _op(pair, side)
    Path(folder, "gpuemu.toml").write_text("\n".join(lines) + "\n", encoding="utf-8")


def _kernel(pair: Pair, side: Side) -> list[str]:
    assert pair.table is not None
    # One file has both kernels: of CUDA C++ both are entries, of Triton each is compiled by itself.
    made = {"source": source_of(pair, side), **pair.table}
    if pair.language == "cuda":
        made["entry"] = side
    return ["", "[[kernels]]", *_entries({"name": op_name(pair, side), **made})]


def source_of(pair: Pair, side: Side) -> str:
    """Return the source of a compiled twin as the command line names it, from the pair's folder."""
    return f"{pair.module}.cu" if pair.language == "cuda" else f"{pair.module}.py:{side}_kernel"


def _op(pair: Pair, side: Side) -> list[str]:
    made: dict[str, Any] = {"name": op_name(pair, side)}
    if pair.language in COMPILED:
        made["kernel"] = op_name(pair, side)
    else:
        made["module"] = f"{pair.module}:{pair.functions[side]}"
    if pair.signature is None:
        made["op"] = pair.op
    else:
        made |= {"signature": pair.signature, "reference": f"{pair.module}:reference"}
    if pair.tolerance is not None:
        made["tolerances"] = {
            dtype: {"atol": atol, "rtol": rtol} for dtype, (atol, rtol) in pair.tolerance.items()
        }
    made |= {key: value for key, value in (("dtypes", pair.dtypes), ("values", pair.values)) if value}
    if pair.launches is not None:
        made["launches"] = pair.launches
    if pair.kwargs:
        made["kwargs"] = pair.kwargs
    if pair.sizes:
        made["dims"] = {dim: _size(size) for dim, size in pair.sizes.items()}
    return ["", "[[ops]]", *_entries(made)]


def _size(size: Any) -> Any:
    """Return the size of a dim: `gpuemu.check` takes a range as a pair of numbers, a project as a table."""
    return {"min": size[0], "max": size[1]} if isinstance(size, tuple) else size


def _entries(table: Mapping[str, Any]) -> list[str]:
    return [f"{key} = {toml(value)}" for key, value in table.items()]


def toml(value: Any) -> str:
    """Return a value as TOML has it."""
    if isinstance(value, Mapping):
        return "{ " + ", ".join(_entries(value)) + " }"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(toml(item) for item in value) + "]"
    # Texts, numbers and truth values are written as in JSON.
    return json.dumps(value)
