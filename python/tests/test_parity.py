"""Every door gives the same verdict: `gpuemu test` with a daemon and without, `gpuemu.check`, and pytest.

Compared are verdicts, numbers of cases, checks, classes of bugs, what was not checked and the failing seeds.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import parity_projects
import pytest
from parity_doors import Said, ops_of, said_by_all

pytest_plugins = ["daemon_fixtures"]

_KEPT = "results are kept by address or identity, which a process gives again"
_MEMORY = "what memory held that it does not write is the process's own"
# Bugs that depend on the process: every door fails these functions, in cases of its own.
BY_PROCESS = {
    "layernorm_cached_by_address_wrong": _KEPT,
    "matmul_cached_by_addresses_wrong": _KEPT,
    "tanh_cached_by_identity_wrong": _KEPT,
    "cached_by_address": _KEPT,
    "cached_by_identity": _KEPT,
    "exp_of_stale_memory_wrong": _MEMORY,
    "tanh_in_next_call_wrong": _MEMORY,
    "layernorm_whole_blocks_wrong": _MEMORY,
    "embedding_skips_padding_wrong": _MEMORY,
    "never_written": _MEMORY,
    "page_never_written": _MEMORY,
    "sigmoid_not_joined_wrong": "a thread writes the result later",
    "sub_by_memory_wrong": "it reads memory around its inputs, which each process lays out in its own way",
    "matmul_planned_by_dtype_wrong": "its plans are those of `rmsnorm_planned_by_dtype` if both are called",
}


def verdicts(said: Said) -> dict[str, Any]:
    """Return the verdict on each op."""
    return {name: told["status"] for name, told in said.items()}


def differences(doors: dict[str, Said]) -> dict[str, str]:
    """Return the ops of which not every door says the same, with what each says."""
    found = {}
    for name in doors["gpuemu.check"]:
        told = {door: said[name] for door, said in doors.items()}
        if name in BY_PROCESS:
            told = {door: {"status": one["status"]} for door, one in told.items()}
        if len({json.dumps(one) for one in told.values()}) > 1:
            found[name] = "\n".join([f"{name}:", *(f"  {door}: {one}" for door, one in told.items())])
    return found


@pytest.fixture
def runner(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(parity_projects.RUNNER))


@pytest.mark.usefixtures("runner")
@pytest.mark.parametrize(
    ("project", "expected"),
    [
        (parity_projects.twins, {"passed", "failed"}),
        (parity_projects.cheats, {"passed", "failed"}),
        (parity_projects.right_example, {"passed"}),
        (parity_projects.wrong_example, {"failed"}),
    ],
)
def test_every_door_says_the_same(
    project: Callable[[Path], Path], expected: set[str], tmp_path: Path, daemon_home: Path
) -> None:
    folder = project(tmp_path)
    doors = said_by_all(folder, daemon_home)
    assert [set(said) for said in doors.values()] == [set(ops_of(folder))] * len(doors)
    found = differences(doors)
    assert not found, "\n".join(found.values())
    judged = verdicts(doors["gpuemu.check"])
    assert set(judged.values()) == expected
    assert {judged[name] for name in BY_PROCESS.keys() & judged.keys()} <= {"failed"}
    assert {status for name, status in judged.items() if name.endswith("_right")} <= {"passed"}
    assert {status for name, status in judged.items() if name.endswith("_wrong")} <= {"failed"}


def test_every_exception_names_a_function(tmp_path: Path, runner: None) -> None:
    known: set[str] = set()
    for project in (parity_projects.twins, parity_projects.cheats):
        folder = tmp_path / project.__name__
        folder.mkdir()
        known |= ops_of(project(folder)).keys()
    assert known >= BY_PROCESS.keys()
