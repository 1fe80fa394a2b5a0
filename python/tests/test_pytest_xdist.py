"""The pytest plugin under pytest-xdist: several processes, one daemon."""

from __future__ import annotations

import re
from pathlib import Path

from framework_packages import require
from pytest_projects import KERNELS, run_pytest

from gpuemu.client import Client

require("xdist")
pytest_plugins = ["daemon_fixtures"]

TESTS = """
import gpuemu
import pytest
from kernels import now_and_then, relu


@pytest.mark.parametrize("number", range(6))
def test_kernel(number):
    gpuemu.check("relu", now_and_then if number % 2 else relu)
"""


def test_workers_share_a_daemon_that_is_started_once(own_home: Path, project: Path) -> None:
    (project / "kernels.py").write_text(KERNELS)
    (project / "pytest.ini").write_text("[pytest]\npythonpath = .\n")
    (project / "test_kernels.py").write_text(TESTS)
    ended = run_pytest(project, "-n", "2", "-v")
    assert "3 failed, 3 passed" in ended.stdout, ended.stdout + ended.stderr
    assert len(set(re.findall(r"\[gw(\d)\]", ended.stdout))) == 2
    assert "not stored" not in ended.stdout
    with Client(project=project, auto_start=False) as client:
        process = client.status().pid
        results = client.list_results("relu", limit=10_000)
        failures = client.list_failures("relu", limit=10_000)
    assert len(results) == 600 and len({result.run for result in results}) == 6
    owners = {failure.runner for failure in failures}
    assert owners == {f"callable test_kernels.py::test_kernel[{number}]" for number in (1, 3, 5)}
    again = run_pytest(project, "-n", "2", "--gpuemu-cases=1", "--gpuemu-seed=2")
    assert "3 failed, 3 passed" in again.stdout
    with Client(project=project, auto_start=False) as client:
        assert client.status().pid == process
    logs = "\n".join(path.read_text() for path in (own_home / "logs").iterdir())
    assert logs.count(" listens on ") == 1
