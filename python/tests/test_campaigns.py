"""Campaigns whose ranges are run one after the other in this process, with a real daemon."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
from campaign_projects import verdict, write_project
from numpy_kernels import padded_softmax, relu, softmax

import gpuemu
from gpuemu.campaigns import CampaignProgress, range_count
from gpuemu.campaigns.archive import pack, unpack
from gpuemu.client import Client
from gpuemu.errors import ClientError

pytest_plugins = ["daemon_fixtures"]


@pytest.fixture
def campaign_client(daemon_home: Path, project: Path) -> Client:
    """Return a client of the project for campaigns."""
    return Client(project=write_project(project))


def whole_run(client: Client, iterations: int, seed: int) -> dict[str, Any]:
    """Return the report on the same run in one piece, by the daemon."""
    config = {"iterations": iterations, "seed": str(seed)}
    run = client.ask_plain("RunCi", ops=[], mode="fuzz", config=config, kernels=False)
    report: dict[str, Any] = run["report"]
    return report


def test_the_report_is_that_of_the_run_in_one_piece(campaign_client: Client) -> None:
    whole = whole_run(campaign_client, 40, 7)
    seen: list[CampaignProgress] = []
    found = gpuemu.campaign(None, 40, seed=7, client=campaign_client, progress=seen.append)
    assert found.plain["ops"][1]["failed"] > 0 and not found.passed
    # It failed in the run before, too.
    assert verdict(found.plain) == verdict(whole)
    assert seen[-1].ranges == seen[-1].all_ranges == range_count(40, None) and seen[-1].lost == 0
    smallest = found.smallest["softmax"]
    assert smallest.result.minimized and smallest.neighbour is not None and smallest.neighbour.fails == 65
    kept = campaign_client.list_failures("softmax", limit=1)
    assert kept[0].minimized and kept[0].sizes == smallest.result.sizes
    with pytest.raises(AssertionError, match="smallest failing case: "):
        found.raise_for_status()


def test_what_is_stored_is_what_the_run_in_one_piece_stores(campaign_client: Client) -> None:
    whole = whole_run(campaign_client, 30, 3)
    found = gpuemu.campaign(None, 30, seed=3, client=campaign_client, minimize=False)

    def stored(run: int, op: str) -> list[dict[str, Any]]:
        results = campaign_client.ask_plain("GetRun", op_name=op, run=str(run))["results"]
        return [verdict(result) for result in results]

    for op in ("relu", "softmax", "compiled"):
        ours = stored(found.run, op)
        assert len(ours) == 30 and ours == stored(int(whole["run"]), op)
    report = campaign_client.ask_plain("ReportStored")["report"]
    assert {op["op"]: op["status"] for op in report["ops"]} == {
        "relu": "passed",
        "softmax": "failed",
        "compiled": "passed",
    }


def test_functions_are_judged_as_by_check(client: Client) -> None:
    functions = {"softmax": softmax, "relu": relu}
    found = gpuemu.campaign(functions, 50, seed=1, client=client)
    assert found.passed and [op.cases for op in found.report.ops] == [50, 50]
    wrong = gpuemu.campaign({"softmax": padded_softmax}, 50, seed=1, client=client, dtypes=["float16"])
    alone = gpuemu.check("softmax", padded_softmax, cases=50, seed=1, dtypes=["float16"], raises=False)
    op = wrong.report.ops[0]
    assert (op.cases, op.failed) == (50, alone.report.failed)
    assert [one.seed for one in op.failures] == [one.seed for one in alone.failures]
    assert "softmax" in wrong.smallest and not wrong
    results = client.list_results("softmax", limit=200)
    assert sum(result.run == wrong.run for result in results) == 50
    assert all(result.client_side for result in results)


def test_a_campaign_that_was_stopped_goes_on(campaign_client: Client) -> None:
    class StoppedError(Exception):
        pass

    def stop(progress: CampaignProgress) -> None:
        if progress.ranges >= 2:
            raise StoppedError

    whole = whole_run(campaign_client, 40, 9)
    with pytest.raises(StoppedError):
        gpuemu.campaign(None, 40, seed=9, client=campaign_client, progress=stop, minimize=False)
    # Nobody takes a campaign that has not ended for one that passed.
    report = campaign_client.ask_plain("ReportStored")["report"]
    assert not report["passed"] and {op["status"] for op in report["ops"]} <= {"unfinished", "failed"}
    begun = campaign_client.ask_plain("GetCampaign")["campaign"]
    kept = len(begun["kept"])
    assert 2 <= kept < begun["parts"]
    seen: list[CampaignProgress] = []
    with pytest.raises(ClientError, match="drawn from"):
        gpuemu.campaign(None, resume=True, client=campaign_client, dtypes=["float16"])
    found = gpuemu.campaign(None, resume=True, client=campaign_client, progress=seen.append, minimize=False)
    assert {progress.planned for progress in seen} == {40 * len(whole["ops"])}
    assert all(progress.cases <= progress.planned for progress in seen)
    assert seen[0].ranges >= kept and found.run == int(begun["run"])
    assert verdict(found.plain) == verdict(whole)
    with pytest.raises(ClientError, match="has no campaign that has not ended"):
        gpuemu.campaign(None, resume=True, client=campaign_client)


@pytest.mark.parametrize("ops", [["relu", "softmax", "compiled"], []], ids=["named", "all"])
def test_parts_that_are_none_of_the_run_are_refused(campaign_client: Client, ops: list[str]) -> None:
    config = {"iterations": 4, "seed": "1"}
    campaign = campaign_client.ask_plain("BeginCampaign", ops=ops, config=config, parts=2)["campaign"]
    run = campaign["run"]
    shard = {"index": 1, "count": 2}
    part = campaign_client.ask_plain("RunCi", ops=[], mode="fuzz", config=config, kernels=False, shard=shard)[
        "report"
    ]
    results: list[Any] = []
    for op in part["ops"]:
        results += campaign_client.ask_plain("GetRun", op_name=op["op"], run=part["run"])["results"]

    def keep(report: dict[str, Any], given: list[Any]) -> None:
        campaign_client.ask_plain("KeepPart", run=run, report=report, results=given)

    for wrong, words in (
        ({**part, "seed": "2"}, "the seed is '2' there and '1' here"),
        ({**part, "gpuemu": "9.9.9"}, "the version of gpuemu"),
        ({**part, "part": {"shard": {"index": 1, "count": 3}}}, "is on no part of 2"),
        ({**part, "ops": [{**op, "planned": 1} for op in part["ops"]]}, "it should have 2"),
        ({**part, "ops": part["ops"][1:]}, "says nothing about op 'relu'"),
    ):
        with pytest.raises(ClientError, match=words):
            keep(wrong, results)
    with pytest.raises(ClientError, match="is missing"):
        keep(part, results[:-1])
    with pytest.raises(ClientError, match="belongs to no case"):
        keep(part, [*results, results[-1]])
    failed = {**results[0], "outcome": "undetermined", "passed": False}
    with pytest.raises(ClientError, match="ended otherwise"):
        keep(part, [failed, *results[1:]])
    with pytest.raises(ClientError, match="shards 1, 2 is missing|there is no report"):
        campaign_client.ask_plain("EndCampaign", run=run)
    keep(part, results)
    keep(part, results)
    assert campaign_client.ask_plain("GetCampaign", run=run)["campaign"]["kept"] == [1]
    with pytest.raises(ClientError, match="of 2 shards 2 is missing"):
        campaign_client.ask_plain("EndCampaign", run=run)


def test_what_makes_no_sense_is_refused_before_anything_runs(
    client: Client, campaign_client: Client, tmp_path: Path
) -> None:
    with Client(project=tmp_path) as nowhere, pytest.raises(ClientError, match="there is no gpuemu.toml"):
        gpuemu.campaign(["relu"], client=nowhere)
    with pytest.raises(ClientError, match="there is no op 'nothing'"):
        gpuemu.campaign(["nothing"], client=campaign_client)
    with pytest.raises(ClientError, match="there is no op 'nothing'"):
        gpuemu.campaign({"nothing": relu}, client=client)
    with pytest.raises(ValueError, match="known: local, ray"):
        gpuemu.campaign(["relu"], engine="slurm", client=client)
    with pytest.raises(ValueError, match="one worker in this process"):
        gpuemu.campaign(["relu"], workers=4, client=client)
    with pytest.raises(ValueError, match="iterations"):
        gpuemu.campaign({"relu": relu}, 0, client=client)
    with pytest.raises(TypeError, match="give a function"):
        gpuemu.campaign({"relu": 3}, client=client)  # type: ignore[dict-item]
    with pytest.raises(TypeError, match="gpuemu.toml says"):
        gpuemu.campaign(["relu"], client=client, tolerance=1.0)


def test_ranges_are_small_enough_and_many_enough() -> None:
    assert range_count(1, None) == 1
    assert range_count(10, 4) == 10
    assert range_count(64, 4) == 16
    assert range_count(64_000, 4) == 1000


def test_a_project_travels_without_its_tools(tmp_path: Path) -> None:
    project = write_project(tmp_path / "here")
    (project / ".git").mkdir()
    (project / ".git/config").write_text("no")
    (project / "run.sh").write_text("#!/bin/sh\n")
    os.chmod(project / "run.sh", 0o755)
    (project / "outside").symlink_to("/etc/passwd")
    there = tmp_path / "there"
    unpack(pack(project), there)
    assert not (there / ".git").exists() and not (there / "outside").exists()
    assert (there / "kernels/softmax.py").read_text() == (project / "kernels/softmax.py").read_text()
    assert subprocess.run([there / "run.sh"], check=False).returncode == 0


def test_options_of_ray_need_ray(daemon_home: Path, project: Path) -> None:
    write_project(project)
    program = Path(os.environ["GPUEMU_DAEMON"]).with_name("gpuemu")
    ran = subprocess.run(
        [program, "fuzz", "--workers", "2"], cwd=project, capture_output=True, text=True, check=False
    )
    assert ran.returncode == 2 and "--workers needs a cluster" in ran.stderr and "--engine ray" in ran.stderr
    both = ["fuzz", "--engine", "ray", "--shard", "1/2"]
    ran = subprocess.run([program, *both], cwd=project, capture_output=True, text=True, check=False)
    assert ran.returncode == 2 and "--shard does not go with --engine ray" in ran.stderr
