"""Every door gives the same verdict: `gpuemu test` with a daemon and without, `gpuemu.check`, and pytest.

The functions are those of the grown corpus, right and wrong, each with what its pair says of it.
"""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from pytest_projects import run_pytest

import gpuemu

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib  # Which pytest brings.

pytest_plugins = ["daemon_fixtures"]

GROWN = Path(__file__).parents[2] / "lab/corpus/grown/python"
CASES, SEED = 12, 1
# Modules and functions whose bugs depend on the process: every door fails them, in cases of its own.
BY_PROCESS = {
    "cached_by_pointer": "results are kept by address or identity, which a process gives again",
    "plan_caches": "plans are kept for the process, which other functions have called before",
    "stale_memory": "what its memory held before is the process's own",
    "lazy_results": "a thread writes the result later",
    "sub_by_memory": "it reads the memory around its inputs, which each process lays out in its own way",
}


def twins() -> list[dict[str, Any]]:
    """Return every function of the pairs in Python: its name, where it is, and the op that it is."""
    pairs = tomllib.loads((GROWN / "pairs.toml").read_text(encoding="utf-8"))["pairs"]
    return [
        {
            "name": pair[side].partition(":")[2],
            "module": pair[side],
            "op": pair["op"],
            "by_process": side == "wrong" and not BY_PROCESS.keys().isdisjoint(pair[side].split(":")),
        }
        for pair in pairs
        for side in ("right", "wrong")
    ]


TWINS = {twin["name"]: twin for twin in twins()}


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


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a project with all functions as its ops."""
    folder = tmp_path_factory.mktemp("parity")
    for source in GROWN.glob("*.py"):
        (folder / source.name).write_text(source.read_text(encoding="utf-8"), encoding="utf-8")
    lines = ["[project]", 'name = "parity"', 'framework = "numpy"']
    for name, twin in TWINS.items():
        lines += ["", "[[ops]]", f'name = "{name}"', f'module = "{twin["module"]}"']
        lines += [f"{key} = {toml(value)}" for key, value in twin["op"].items()]
    (folder / "gpuemu.toml").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return folder


def toml(value: Any) -> str:
    """Return a value as TOML has it."""
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{key} = {toml(inner)}" for key, inner in value.items()) + " }"
    return json.dumps(value)


def by_command_line(folder: Path, home: Path, *options: str) -> dict[str, dict[str, Any]]:
    """Run `gpuemu test` on all functions."""
    program = Path(os.environ["GPUEMU_DAEMON"]).with_name("gpuemu")
    command = [str(program), "test", "--format", "json", "--no-minimize", "--parallel", "0", *options]
    command += ["--iterations", str(CASES), "--base-seed", str(SEED)]
    known = {**os.environ, "GPUEMU_HOME": str(home), "GPUEMU_PYTHON": sys.executable}
    told = subprocess.run(
        command, cwd=folder, env=known, capture_output=True, text=True, check=False, timeout=600
    )
    assert told.stdout, told.stderr
    return {op["op"]: summary(op) for op in json.loads(told.stdout)["ops"]}


CHECKS = """
import json
from pathlib import Path

import pytest
from test_parity import TWINS, checked

@pytest.mark.parametrize("name", TWINS)
def test_function(name):
    Path(f"{name}.json").write_text(json.dumps(checked(name, Path())))
"""


def checked(name: str, folder: Path, **options: Any) -> dict[str, Any]:
    """Run `gpuemu.check` on a function, as an op of the project."""
    module, _, function = TWINS[name]["module"].partition(":")
    report = gpuemu.check(
        name,
        getattr(importlib.import_module(module), function),
        project=folder,
        launches=TWINS[name]["op"].get("launches"),
        store=False,
        raises=False,
        minimize=False,
        **options,
    )
    return summary(report.report.to_json())


def test_every_door_says_the_same(written: Path, daemon_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    doors = {
        "gpuemu test": by_command_line(written, daemon_home),
        "gpuemu test --no-daemon": by_command_line(written, written / "home", "--no-daemon"),
    }
    monkeypatch.syspath_prepend(str(written))
    doors["gpuemu.check"] = {name: checked(name, written, cases=CASES, seed=SEED) for name in TWINS}
    (written / "test_functions.py").write_text(CHECKS, encoding="utf-8")
    paths = [str(Path(gpuemu.__file__).parents[1]), str(Path(__file__).parent), str(written)]
    told = run_pytest(
        written,
        "-q",
        f"--gpuemu-cases={CASES}",
        f"--gpuemu-seed={SEED}",
        "--gpuemu-no-store",
        PYTHONPATH=os.pathsep.join(paths),
    )
    assert told.returncode == 0, told.stdout
    doors["pytest"] = {
        name: json.loads((written / f"{name}.json").read_text(encoding="utf-8")) for name in TWINS
    }
    different = []
    for name in TWINS:
        keys = ["status"] if TWINS[name]["by_process"] else list(doors["gpuemu.check"][name])
        told_by = {door: {key: said[name][key] for key in keys} for door, said in doors.items()}
        if len({json.dumps(one) for one in told_by.values()}) > 1:
            different.append("\n".join([f"{name}:", *(f"  {door}: {one}" for door, one in told_by.items())]))
    assert not different, "\n".join(different)
    verdicts = {name: said["status"] for name, said in doors["gpuemu.check"].items()}
    assert set(verdicts.values()) == {"passed", "failed"}
    assert {verdicts[name] for name, twin in TWINS.items() if twin["by_process"]} == {"failed"}
