"""What the workers of a campaign do, wherever they are: the cases of one range, and shrinking one failure."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from gpuemu import _native
from gpuemu._client.project import project_reference
from gpuemu._runs.op_run import OpRun, Plan
from gpuemu._runs.settings import Settings, opened
from gpuemu._runs.signature import function_name
from gpuemu.campaigns.archive import unpack
from gpuemu.custom_op import CustomOp
from gpuemu.errors import ClientError
from gpuemu.frameworks.registry import adapter as adapter_of

Told = Callable[[int, int], None]
"""Told how many cases of the range were run, and how many of them failed. What it raises ends the range."""

_WAIT_MS = 200


@dataclass(frozen=True)
class Part:
    """What came of a range."""

    report: dict[str, Any]
    """The report on it, a shard of the run."""
    results: list[Any] = field(repr=False)
    """The verdicts on all of its cases, for each op in their order."""


class Runner(Protocol):
    """Work that was begun in some process."""

    def run(self, index: int, told: Told) -> Part:
        """Run the cases of a range; ranges are counted from 1."""

    def minimise(self, op: str, seed: int) -> dict[str, Any] | None:
        """Shrink the failing case of a seed; None where it does not fail by itself."""

    def close(self) -> None:
        """Give everything back."""


class Work(Protocol):
    """What can be sent to a worker."""

    def open(self) -> Runner:
        """Begin, in the process of the worker."""


@dataclass(frozen=True)
class ProjectWork:
    """Ops as a project defines them: modules, scripts and compiled kernels."""

    archive: bytes = field(repr=False)
    configuration: str
    """The name of its configuration file."""
    ops: Sequence[str]
    config: Mapping[str, Any]
    """What cases are drawn from, as requests say it."""
    parts: int

    def open(self) -> ProjectRunner:
        """Unpack the project and open a service for it."""
        return ProjectRunner(self)


class ProjectRunner:
    """A copy of the project, and gpuemu's service in this process."""

    def __init__(self, work: ProjectWork) -> None:
        """Unpack the project."""
        self._work = work
        self._folder = tempfile.TemporaryDirectory(prefix="gpuemu-worker-")
        root = Path(self._folder.name).resolve() / "project"
        unpack(work.archive, root)
        self._project = project_reference(root / work.configuration)
        self._service = _native.LocalService(Path(self._folder.name) / "home")

    def run(self, index: int, told: Told) -> Part:
        """Run the cases of a range of every op."""
        shard = {"index": index, "count": self._work.parts}
        run = {"ops": list(self._work.ops), "mode": "fuzz", "config": self._work.config, "parallel": 1}
        report = self._do("RunCi", told, **run, shard=shard, kernels=False)["report"]
        results: list[Any] = []
        for op in report["ops"]:
            if op.get("part") is not None:
                results += self._ask("GetRun", op_name=op["op"], run=report["run"])["results"]
        return Part(report, results)

    def minimise(self, op: str, seed: int) -> dict[str, Any] | None:
        """Shrink the failing case of a seed."""
        config = {
            name: value for name, value in self._work.config.items() if name not in ("iterations", "seed")
        }
        try:
            answer = self._do("Minimize", None, op_name=op, seed=str(seed), config=config)
        except ClientError as error:
            if error.code == "NotFound":
                return None
            raise
        minimized: dict[str, Any] = answer["minimized"]
        return minimized

    def close(self) -> None:
        """Remove the copy."""
        self._folder.cleanup()

    def _do(self, kind: str, told: Told | None, **fields: Any) -> dict[str, Any]:
        """Do something long as a job."""
        request = {"type": kind, "project": self._project, **fields}
        job = self._send({"type": "SubmitJob", "job": request})["job"]
        while job["state"] == "running":
            job = self._send({"type": "JobStatus", "job": job["job"], "wait_ms": _WAIT_MS})["job"]
            try:
                if told is not None:
                    told(job["done"], job["failures"])
            except BaseException:
                self._send({"type": "CancelJob", "job": job["job"]})
                raise
        return _raised(job["result"])

    def _ask(self, kind: str, **fields: Any) -> dict[str, Any]:
        return self._send({"type": kind, "project": self._project, **fields})

    def _send(self, request: dict[str, Any]) -> dict[str, Any]:
        return _raised(json.loads(self._service.call(json.dumps(request))))


def _raised(answer: dict[str, Any]) -> dict[str, Any]:
    if answer["type"] == "Error":
        raise ClientError(answer["message"], code=answer["code"], hint=answer.get("hint"))
    return answer


@dataclass(frozen=True)
class CallableWork:
    """Functions, called as kernels of ops in the process of the worker."""

    functions: Sequence[tuple[str | CustomOp, Callable[..., Any]]]
    settings: Settings
    framework: str
    cases: int
    seed: int
    parts: int
    report: Mapping[str, Any]
    """What the reports on all ranges have in common."""

    def open(self) -> CallableRunner:
        """Put functions and ops together."""
        return CallableRunner(self)


class CallableRunner:
    """Functions that are called in this process."""

    def __init__(self, work: CallableWork) -> None:
        """Put functions and ops together."""
        self._work = work
        self._ops: dict[str, OpRun] = {}
        adapter = adapter_of(work.framework)
        # What cases are drawn from was settled where the campaign was begun; no project is read here.
        with tempfile.TemporaryDirectory(prefix="gpuemu-worker-") as nowhere:
            options = work.settings.options(project_reference(nowhere), None)
            for op, function in work.functions:
                name = op if isinstance(op, str) else op.name
                runner = f"callable {function_name(function)}"
                self._ops[name] = OpRun(opened(op, options), function, adapter, name=runner)

    def run(self, index: int, told: Told) -> Part:
        """Run the cases of a range of every op."""
        work = self._work
        shard = (index, work.parts)
        ops: list[dict[str, Any]] = []
        results: list[Any] = []
        done = failed = 0
        for op_run in self._ops.values():
            found: dict[str, Any] = {}

            def keep(texts: list[str], found: dict[str, Any] = found) -> None:
                for result in map(json.loads, texts):
                    # A case that fails later, after it passed, is told twice: the last word counts.
                    found.pop(result["seed"], None)
                    found[result["seed"]] = result

            def tell(cases: int, _: int, failures: int, before: tuple[int, int] = (done, failed)) -> None:
                told(before[0] + cases, before[1] + failures)

            report = op_run.run(Plan(work.cases, work.seed, shard=shard), keep, tell)
            done, failed = done + report["cases"], failed + report["failed"]
            ops.append(report)
            results += found.values()
        part = {"shard": {"index": index, "count": work.parts}}
        return Part({**work.report, "ops": ops, "part": part}, results)

    def minimise(self, op: str, seed: int) -> dict[str, Any] | None:
        """Shrink the failing case of a seed."""
        return self._ops[op].minimise(seed)

    def close(self) -> None:
        """Nothing is held."""
