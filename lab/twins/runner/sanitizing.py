"""The door `gpuemu sanitize`: one launch of a compiled kernel, with every access checked."""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from pair import SIDES, Pair, Side
from programs import gpuemu
from project import source_of
from verdict import Verdict, short, unjudged

# `f32:random:5x200` stands for a file of such numbers, `i64:below16:300` for one of whole numbers from 0,
# `f32:inout:zeros:16` for one of zeros.
_DRAWN = re.compile(
    r"(?P<before>(?:\w+=)?(?P<kind>\w+):(?:inout:)?)(?P<how>random|zeros|below(?P<below>\d+)):(?P<shape>[\dx]+)"
)
# What the machine names more precisely than the checks of a case do.
_CHECKS = {
    "unmapped": "out_of_bounds",
    "read_only": "input_modified",
    "never_written": "not_written",
    "copy_in_flight": "race",
    "divergent_barrier": "synchronisation",
    "barrier_count": "synchronisation",
    "inactive_lane": "synchronisation",
    "member_mask": "synchronisation",
}
_KINDS = {"f16": np.float16, "f32": np.float32, "f64": np.float64, "i32": np.int32, "i64": np.int64}


def by_sanitize(pair: Pair) -> Mapping[Side, Verdict]:
    """Judge both twins by the launch that the pair names."""
    assert pair.sanitize is not None
    with tempfile.TemporaryDirectory(prefix="gpuemu-twins-") as name:
        folder = Path(name)
        arguments: list[str] = []
        for option in ("grid", "block", "shared"):
            if option in pair.sanitize:
                arguments += [f"--{option}", str(pair.sanitize[option])]
        for place, argument in enumerate(pair.sanitize["args"]):
            arguments += ["--arg", drawn(argument, folder / f"in{place}.npy")]
        return {side: launched(pair.folder, side, source_of(pair, side), arguments, pair) for side in SIDES}


def launched(
    folder: Path, side: Side, source: str, arguments: Sequence[str], pair: Pair | None = None
) -> Verdict:
    """Return the verdict on one launch of a kernel in a folder."""
    command = ["sanitize", "--no-daemon", "--quiet", source, *arguments]
    if pair is not None and pair.language == "cuda":
        command += ["--entry", side]
    if pair is not None and pair.language == "triton":
        tables = [pair.sanitize or {}, pair.table or {}]
        compiled = next(table["compile"] for table in tables if "compile" in table)
        command += ["--signature", ",".join(compiled["signature"])]
        for name, value in compiled.get("constants", {}).items():
            command += ["--constant", f"{name}={value}"]
    with tempfile.TemporaryDirectory(prefix="gpuemu-twins-") as copy:
        # Compilers leave files beside a source.
        shutil.copytree(folder, copy, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__"))
        status, report = gpuemu(Path(copy), command)
    if "findings" not in report:
        return unjudged(short(f"status {status}: {report}"))
    found = report["findings"]
    if report["failure"] is not None:
        return Verdict(
            failed=True, checks=frozenset(["runner"]), classes=None, note=short(str(report["failure"]))
        )
    if not found:
        return Verdict(passed=status == 0, note=f"status {status}")
    checks = frozenset(_CHECKS.get(finding["fault"], finding["fault"]) for finding in found)
    return Verdict(failed=True, checks=checks, classes=None, note=short(found[0]["message"]))


def drawn(argument: str, path: Path) -> str:
    """Return the argument with a file in place of numbers that are to be drawn."""
    match = _DRAWN.fullmatch(argument)
    if match is None:
        return argument
    shape = [int(size) for size in match["shape"].split("x")]
    random, kind = np.random.default_rng(1), _KINDS[match["kind"]]
    if match["how"] == "zeros":
        np.save(path, np.zeros(shape, kind))
    elif match["below"] is not None:
        np.save(path, random.integers(0, int(match["below"]), shape).astype(kind))
    else:
        np.save(path, random.standard_normal(shape).astype(kind))
    return f"{match['before']}{path}"
