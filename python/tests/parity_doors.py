"""The doors by which the functions of a project are judged, each by a command of its own."""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from pytest_projects import environment, run_pytest

import gpuemu

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib  # Which pytest brings.

# Few cases, and a seed from which they show every wrong twin.
CASES, SEED = 12, 5

Said = dict[str, dict[str, Any]]
"""What a door says of each op of a project, by its name."""


def ops_of(folder: Path) -> dict[str, dict[str, Any]]:
    """Return what a project says of its ops, by their names."""
    written = tomllib.loads((folder / "gpuemu.toml").read_text(encoding="utf-8"))
    return {op["name"]: op for op in written["ops"]}


def summary(report: Any) -> dict[str, Any]:
    """Return what a report says of an op, as far as every door must say it."""
    findings = {
        (finding["check"], finding["bug_class"])
        for failure in report["failures"]
        for finding in failure["failures"]
    }
    return {
        "status": report["status"],
        "cases": [report["cases"], report["passed"], report["failed"], report["undetermined"]],
        "findings": sorted(map(list, findings)),
        "not_checked": sorted(report["not_checked"]),
        "seeds": [str(failure["seed"]) for failure in report["failures"]],
    }


def said_by_all(folder: Path, home: Path) -> dict[str, Said]:
    """Return what every door says of a project; `home` is the folder of a daemon that runs."""
    with ThreadPoolExecutor() as pool:
        started = {
            "gpuemu test": pool.submit(by_command_line, folder, home),
            "gpuemu test --no-daemon": pool.submit(by_command_line, folder, folder / "home", "--no-daemon"),
            "gpuemu.check": pool.submit(by_check, folder),
            "pytest": pool.submit(by_pytest, folder),
        }
        return {door: said.result() for door, said in started.items()}


def by_command_line(folder: Path, home: Path, *options: str) -> Said:
    """Run `gpuemu test` on all ops."""
    program = Path(os.environ["GPUEMU_DAEMON"]).with_name("gpuemu")
    command = [str(program), "test", "--format", "json", "--no-minimize", "--parallel", "0", *options]
    command += ["--iterations", str(CASES), "--base-seed", str(SEED)]
    known = {**os.environ, "GPUEMU_HOME": str(home), "GPUEMU_PYTHON": sys.executable}
    told = subprocess.run(
        command, cwd=folder, env=known, capture_output=True, text=True, check=False, timeout=600
    )
    assert told.stdout, told.stderr
    return {op["op"]: summary(op) for op in json.loads(told.stdout)["ops"]}


def by_check(folder: Path) -> Said:
    """Run `gpuemu.check` on all ops, in one process."""
    command = [sys.executable, "-c", _PROGRAM]
    known = environment(PYTHONPATH=_search_path(folder))
    told = subprocess.run(
        command, cwd=folder, env=known, capture_output=True, text=True, check=False, timeout=600
    )
    assert told.returncode == 0, told.stderr
    said: Said = json.loads(told.stdout.splitlines()[-1])
    return said


def by_pytest(folder: Path) -> Said:
    """Run a test of each op, with the cases and the seed on the command line."""
    (folder / "test_functions.py").write_text(_TESTS, encoding="utf-8")
    options = ["-q", f"--gpuemu-cases={CASES}", f"--gpuemu-seed={SEED}", "--gpuemu-no-store"]
    told = run_pytest(folder, *options, "test_functions.py", PYTHONPATH=_search_path(folder))
    assert told.returncode == 0, told.stdout
    lines = (folder / "said.jsonl").read_text(encoding="utf-8").splitlines()
    return dict(json.loads(line) for line in lines)


def checked(name: str, **options: Any) -> dict[str, Any]:
    """Run `gpuemu.check` on the function of an op of the project in the current folder."""
    op = ops_of(Path())[name]
    module, _, function = op["module"].partition(":")
    report = gpuemu.check(
        name,
        getattr(importlib.import_module(module), function or name),
        project=Path(),
        launches=op.get("launches"),
        store=False,
        raises=False,
        minimize=False,
        **options,
    )
    return summary(report.report.to_json())


def _search_path(folder: Path) -> str:
    package = Path(gpuemu.__file__).parents[1]
    return os.pathsep.join(map(str, [package, Path(__file__).parent, folder]))


_PROGRAM = """
import json
from pathlib import Path
from parity_doors import CASES, SEED, checked, ops_of

print(json.dumps({name: checked(name, cases=CASES, seed=SEED) for name in ops_of(Path())}))
"""

_TESTS = """
import json
from pathlib import Path

import pytest
from parity_doors import checked, ops_of

@pytest.mark.parametrize("name", ops_of(Path()))
def test_function(name):
    with Path("said.jsonl").open("a", encoding="utf-8") as file:
        file.write(json.dumps([name, checked(name)]) + "\\n")
"""
