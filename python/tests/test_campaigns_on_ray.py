"""Campaigns on a real Ray cluster of this machine: workers and drivers are killed on the way."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from campaign_projects import verdict, write_project
from framework_packages import require
from numpy_kernels import padded_softmax, softmax

import gpuemu
from gpuemu.campaigns.ray_engine import RayEngine
from gpuemu.client import Client
from gpuemu.errors import ClientError

pytest_plugins = ["daemon_fixtures"]

ray = require("ray")

_SOURCE = Path(__file__).resolve().parents[1]
# Workers are processes that Ray starts: they find the package, and the kernels of tests, by this.
os.environ["PYTHONPATH"] = os.pathsep.join([str(_SOURCE), str(_SOURCE / "tests")])

_SEED = 7
_CASES = 48


@pytest.fixture(scope="module")
def cluster() -> Iterator[str]:
    """Start a cluster with room for four workers; its address."""
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    context = ray.init(num_cpus=4, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
    yield context.address_info["address"]
    ray.shutdown()


@pytest.fixture
def campaign_client(daemon_home: Path, project: Path) -> Client:
    """Return a client of the project for campaigns."""
    return Client(project=write_project(project))


def local_report(client: Client, iterations: int = _CASES) -> dict[str, Any]:
    """Return the report on the same campaign without a cluster, as `gpuemu fuzz` makes it."""
    config = {"iterations": iterations, "seed": str(_SEED)}
    answer = client.ask_plain("RunCi", ops=[], mode="fuzz", config=config, kernels=False)
    report: dict[str, Any] = answer["report"]
    return report


def worker_processes() -> list[int]:
    """Return the processes of workers that are there."""
    found = []
    for folder in Path("/proc").iterdir():
        with contextlib.suppress(OSError, ValueError):
            if b"ray::RayWorker" in (folder / "cmdline").read_bytes():
                found.append(int(folder.name))
    return found


@pytest.mark.parametrize("workers", [1, 2, 4])
def test_the_verdict_is_the_local_one(cluster: str, campaign_client: Client, workers: int) -> None:
    local = local_report(campaign_client)
    found = gpuemu.campaign(None, _CASES, seed=_SEED, engine="ray", workers=workers, client=campaign_client)
    assert verdict(found.plain) == verdict(local)
    assert not found.lost and found.report.ops[1].failed > 0
    assert found.smallest["softmax"].neighbour is not None
    assert found.smallest["softmax"].neighbour.fails == 65
    for op in ("relu", "softmax", "compiled"):
        results = campaign_client.ask_plain("GetRun", op_name=op, run=str(found.run))["results"]
        assert len(results) == _CASES


def test_functions_run_on_the_workers(cluster: str, client: Client) -> None:
    here = os.getpid()

    def elsewhere(x: Any) -> Any:
        assert os.getpid() != here
        return softmax(x)

    found = gpuemu.campaign(
        {"softmax": elsewhere}, 60, seed=2, engine="ray", workers=2, resources={"CPU": 0.5}, client=client
    )
    assert found.passed and found.report.ops[0].cases == 60, str(found)
    wrong = gpuemu.campaign({"softmax": padded_softmax}, 60, seed=2, engine="ray", workers=2, client=client)
    local = gpuemu.campaign({"softmax": padded_softmax}, 60, seed=2, client=client)
    assert verdict(wrong.plain) == verdict(local.plain) and "softmax" in wrong.smallest


def test_a_worker_that_is_killed_loses_nothing(cluster: str, client: Client, tmp_path: Path) -> None:
    killed = tmp_path / "killed"

    def ends_one_process(x: Any) -> Any:
        if os.getpid() != driver and x.size > 64:
            with contextlib.suppress(FileExistsError):
                killed.touch(exist_ok=False)
                os.kill(os.getpid(), signal.SIGKILL)
        return padded_softmax(x)

    driver = os.getpid()
    local = gpuemu.campaign({"softmax": ends_one_process}, _CASES, seed=_SEED, client=client, minimize=False)
    found = gpuemu.campaign(
        {"softmax": ends_one_process}, _CASES, seed=_SEED, engine="ray", workers=2, client=client
    )
    assert len(found.lost) == 1
    assert verdict(found.plain) == verdict(local.plain) and found.report.ops[0].failed > 0
    assert f"range {found.lost[0].range} was lost and run again" in str(found)
    stored = client.ask_plain("GetRun", op_name="softmax", run=str(found.run))["results"]
    assert len(stored) == _CASES


@dataclass(frozen=True)
class DiesAtStart:
    """Work whose processes die before they have begun, a number of times."""

    deaths: Path
    times: int

    def open(self) -> Any:
        """Die, or begin."""
        for death in range(self.times):
            with contextlib.suppress(FileExistsError):
                (self.deaths / str(death)).touch(exist_ok=False)
                os.kill(os.getpid(), signal.SIGKILL)
        return ExitStack()


@pytest.mark.parametrize(("times", "begins"), [(2, True), (9, False)])
def test_a_worker_that_dies_before_it_has_begun_is_replaced(
    cluster: str, tmp_path: Path, times: int, begins: bool
) -> None:
    engine = RayEngine(workers=1)
    engine.start(DiesAtStart(tmp_path, times))
    refused = contextlib.nullcontext() if begins else pytest.raises(ClientError, match="cannot begin")
    try:
        with refused:
            while engine.workers() == 0:
                engine.wait(1.0)
    finally:
        engine.close()
    assert len(list(tmp_path.iterdir())) == (2 if begins else 3)


def test_a_case_that_ends_its_worker_is_an_error_that_names_its_range(cluster: str, client: Client) -> None:
    def ends_the_process(x: Any) -> Any:
        os.kill(os.getpid(), signal.SIGKILL)

    with pytest.raises(ClientError, match="was lost twice, each time with its worker") as raised:
        gpuemu.campaign({"softmax": ends_the_process}, 8, seed=1, engine="ray", workers=1, client=client)
    assert raised.value.code == "WorkerLost" and "resume=" in str(raised.value)


def command_line(project: Path, *arguments: str) -> list[str]:
    """Return `gpuemu fuzz` on a cluster of its own."""
    program = Path(os.environ["GPUEMU_DAEMON"]).with_name("gpuemu")
    usual = ["fuzz", "--engine", "ray", "--workers", "2", "--iterations", str(_CASES), "--seed", str(_SEED)]
    return [str(program), *usual, *arguments]


def test_a_driver_that_is_killed_is_resumed_from_the_command_line(
    campaign_client: Client, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GPUEMU_PYTHON", sys.executable)
    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "0")
    local = local_report(campaign_client)
    slowly = {**os.environ, "CAMPAIGN_SLOWLY": "0.05"}
    driver = subprocess.Popen(
        command_line(project),
        cwd=project,
        env=slowly,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    kept = _wait_for_parts(campaign_client, driver)
    os.killpg(driver.pid, signal.SIGKILL)
    driver.communicate()
    resumed = subprocess.run(
        [*command_line(project, "--resume", "--format", "json"), "--quiet"],
        cwd=project,
        capture_output=True,
        text=True,
        check=False,
    )
    assert resumed.returncode == 1, resumed.stderr
    assert len(kept) >= 1
    report = json.loads(resumed.stdout)
    assert verdict(report) == verdict(local)


def _wait_for_parts(client: Client, driver: subprocess.Popen[bytes]) -> list[int]:
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        assert driver.poll() is None, driver.communicate()
        with contextlib.suppress(ClientError):
            campaign = client.ask_plain("GetCampaign")["campaign"]
            if campaign["kept"]:
                assert len(campaign["kept"]) < campaign["parts"]
                return list(campaign["kept"])
        time.sleep(0.05)
    raise AssertionError("no range was kept")
