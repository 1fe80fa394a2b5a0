"""The daemon's client: cases, verdicts, stored results, baselines and jobs."""

from __future__ import annotations

import contextlib
import json
import os
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any

from gpuemu._arrays.dtypes import dtype_name
from gpuemu._arrays.tensors import Outgoing
from gpuemu._client.connection import Connection, raised
from gpuemu._client.record import plain
from gpuemu._native import PROTOCOL_VERSION, project_reference
from gpuemu.errors import ClientError, ConnectionError, ValidationError
from gpuemu.results import (
    BaselineSummary,
    ComparisonReport,
    DaemonStatus,
    Inspection,
    JobStatus,
    Minimized,
    OpSummary,
    Pong,
    Replayed,
    RunReport,
    TestCase,
    ValidationResult,
)

if TYPE_CHECKING:
    from gpuemu.custom_op import CustomOp
    from gpuemu.frameworks.base import BaseAdapter
    from gpuemu.reports import FuzzResults

Progress = Callable[[JobStatus], object]
"""Told now and then how far a job is. What it raises cancels the job."""

_WATCHED = 0.1
_UNWATCHED = 5.0
"""Seconds that one question for a job's state waits for its end, with and without somebody who watches."""

_STOP_TIME = 10.0
"""Seconds that the daemon may take to end."""


class Client:
    """A client of the daemon, which is started if none listens. Threads may share it."""

    def __init__(
        self,
        socket: str | os.PathLike[str] | None = None,
        project: str | os.PathLike[str] | None = None,
        timeout: float = 600.0,
        auto_start: bool = True,
        python: str | os.PathLike[str] | None = None,
    ) -> None:
        """Make a client. Nothing is opened before the first request.

        `socket` is the daemon's, by default that of `GPUEMU_SOCKET` or `GPUEMU_HOME`. `project` is a folder
        whose nearest `gpuemu.toml` says which ops there are, by default the current one; without a
        configuration there are the built-in ops. `timeout` holds for each request, in seconds. `python` is
        what the daemon runs modules and scripts in, by default `GPUEMU_PYTHON` or this interpreter.
        """
        self._connection = Connection(socket, timeout, auto_start)
        self._folder = os.path.abspath(project if project is not None else os.getcwd())
        self._python = os.fspath(python or os.environ.get("GPUEMU_PYTHON") or sys.executable or "python3")

    def __enter__(self) -> Client:
        """Return the client itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the client."""
        self.close()

    def close(self) -> None:
        """Close the connections and give shared memory back. The daemon goes on."""
        self._connection.close()

    @property
    def socket(self) -> str:
        """The daemon's socket."""
        return str(self._connection.socket)

    @property
    def project(self) -> dict[str, Any]:
        """What requests name the project by, its configuration read now."""
        reference: dict[str, Any] = json.loads(project_reference(self._folder, self._python))
        return reference

    def _ask(self, kind: str, tensors: Outgoing | None = None, **fields: Any) -> Any:
        present = {name: value for name, value in fields.items() if value is not None}
        return self._connection.ask(kind, {"project": self.project, **present}, tensors)

    def ask_plain(self, kind: str, **fields: Any) -> dict[str, Any]:
        """Ask for anything about the project, and return the answer as JSON has it.

        A request's type and fields, as `docs/reference/protocol.md` has them.
        """
        return self._connection.ask_plain(kind, {"project": self.project, **fields})

    # The daemon.

    def ping(self, timeout: float | None = None) -> Pong:
        """Ask whether the daemon is there."""
        pong: Pong = self._connection.ask("Ping", {"protocol_version": PROTOCOL_VERSION}, timeout=timeout)
        return pong

    def status(self) -> DaemonStatus:
        """Ask how the daemon is."""
        status: DaemonStatus = self._connection.ask("Status", {})
        return status

    def shutdown(self) -> None:
        """End the daemon, if one runs; jobs that run are cancelled, nothing stored is lost."""
        deadline = time.monotonic() + _STOP_TIME
        try:
            self._connection.ask_running("Shutdown")
            while time.monotonic() < deadline:
                self._connection.ask_running("Ping")
                time.sleep(0.02)
        except ConnectionError as error:
            if error.code not in ("NotRunning", "ConnectFailed", "Broken"):
                raise
            # It may still hold its ends of the connections; nobody answers there any more.
            self._connection.forget()
            return
        message = f"the daemon still answers {_STOP_TIME:g} s after it was asked to end"
        raise ConnectionError(message, code="TimedOut", hint="`gpuemu daemon logs` may say why")

    # Ops and outputs.

    def list_ops(self) -> list[OpSummary]:
        """Return the ops that the project defines."""
        ops: list[OpSummary] = self._ask("ListOps")
        return ops

    def validate_op(
        self,
        op: str,
        inputs: Mapping[str, Any],
        output: Any,
        *,
        kwargs: Mapping[str, Any] | None = None,
        raise_on_failure: bool = False,
    ) -> ValidationResult:
        """Judge an output, or a dict of outputs by name, that was computed from inputs of one's own.

        `ValidationError` where `raise_on_failure` is set and it did not pass: also where nothing could be
        judged.
        """
        tensors = Outgoing()
        fields = {"inputs": tensors.add_named(inputs, "inputs"), **_outputs(tensors, output)}
        parameters = {name: plain(value) for name, value in (kwargs or {}).items()}
        result: ValidationResult = self._ask("ValidateOp", tensors, op_name=op, kwargs=parameters, **fields)
        if raise_on_failure and not result.passed:
            raise ValidationError(result.summary, result)
        return result

    def fuzz_op(
        self,
        op: str,
        iterations: int | None = None,
        seed: int | None = None,
        dtypes: Iterable[Any] | None = None,
        layouts: Iterable[str] | None = None,
        value_distribution: str | None = None,
        seconds: float | None = None,
        min_shape: Sequence[int] | None = None,
        max_shape: Sequence[int] | None = None,
        fail_fast: bool = False,
        quick: bool = False,
        progress: Progress | None = None,
    ) -> RunReport:
        """Try many cases of an op that the project runs itself."""
        config = _drawn_from(
            iterations=iterations,
            seed=seed,
            dtypes=dtypes,
            layouts=layouts,
            value_distribution=value_distribution,
            seconds=seconds,
            min_shape=min_shape,
            max_shape=max_shape,
            quick=quick,
        )
        report: RunReport = self._run("FuzzOp", progress, op_name=op, config=config, fail_fast=fail_fast)
        return report

    def get_test_case(self, op: str, seed: int | None = None, **settings: Any) -> TestCase:
        """Return one generated case, by its seed or at random; `settings` are those of `fuzz_op`."""
        number = None if seed is None else str(seed)
        config = _drawn_from(**settings)
        case: TestCase = self._ask("GetTestCase", op_name=op, seed=number, config=config, encoding="binary")
        case.settings.update(settings)
        return case

    def get_test_batch(
        self,
        op: str,
        count: int | None = None,
        seeds: Iterable[int] | None = None,
        seed: int | None = None,
        **settings: Any,
    ) -> list[TestCase]:
        """Return generated cases: so many from a base seed, or one for each of `seeds`."""
        numbers = None if seeds is None else [str(number) for number in seeds]
        cases: list[TestCase] = self._ask(
            "GetTestBatch",
            op_name=op,
            count=count,
            seeds=numbers,
            config=_drawn_from(seed=seed, **settings),
            encoding="binary",
        )
        for case in cases:
            case.settings.update(settings)
        return cases

    def submit_output(
        self,
        op: str,
        inputs: Mapping[str, Any] | None,
        output: Any,
        seed: int,
        *,
        raise_on_failure: bool = False,
        **settings: Any,
    ) -> ValidationResult:
        """Judge and keep what was computed for a generated case.

        `settings` are those that the case was drawn with. `inputs`, if given, are compared with what the seed
        stands for: a kernel that wrote over them computed another case.
        """
        tensors = Outgoing()
        named = None if inputs is None else tensors.add_named(inputs, "inputs")
        fields = _outputs(tensors, output)
        config = _drawn_from(**settings)
        result: ValidationResult = self._ask(
            "SubmitOutput", tensors, op_name=op, seed=str(seed), config=config, inputs=named, **fields
        )
        if raise_on_failure and not result.passed:
            raise ValidationError(result.summary, result)
        return result

    def record_results(
        self,
        op: str,
        results: Iterable[ValidationResult | Mapping[str, Any]],
        *,
        base_seed: int,
        run: int | None = None,
        settings: Mapping[str, Any] | None = None,
    ) -> int:
        """Keep verdicts that this process reached, and return the number of their run.

        Later batches of the same campaign pass that number as `run`. `inputs` of a failure may be arrays.
        """
        tensors = Outgoing()
        written = [_result(tensors, result) for result in results]
        number = None if run is None else str(run)
        config = dict(settings or {})
        recorded: int = self._ask(
            "RecordResults",
            tensors,
            op_name=op,
            base_seed=str(base_seed),
            run=number,
            settings=config,
            results=written,
        )
        return recorded

    def record_json(
        self, op: str, base_seed: int, settings: Mapping[str, Any], results: Sequence[str], run: int | None
    ) -> int:
        """Do what `record_results` does, with results that are JSON already."""
        fields: dict[str, Any] = {
            "type": "RecordResults",
            "project": self.project,
            "op_name": op,
            "base_seed": str(base_seed),
            "settings": settings,
        }
        if run is not None:
            fields["run"] = str(run)
        head = json.dumps(fields)
        recorded: int = self._connection.ask_text(
            "RecordResults", f'{head[:-1]},"results":[{",".join(results)}]}}'
        )
        return recorded

    def fuzz_op_client_side(
        self,
        op: str | CustomOp,
        run_op: Callable[..., Any],
        iterations: int = 100,
        seed: int | None = None,
        value_distribution: str | None = None,
        dtypes: Sequence[str] | None = None,
        *,
        framework: str | BaseAdapter | None = None,
        replay: int | Sequence[int] | None = None,
        fail_fast: bool = False,
        progress: Callable[[int, int, int], None] | None = None,
        raise_on_failure: bool = False,
        **settings: Any,
    ) -> FuzzResults:
        """Try a function of this process as a kernel of an op, and keep every result.

        `run_op` gets the inputs by name if its parameters are called like them, in order if it has several,
        and otherwise as one dict: `lambda inputs: kernel(inputs["q"], inputs["k"])`. The next cases and what
        is expected of them are made while it runs. `replay` runs the cases of these seeds and no others;
        `progress` is told the cases done, planned and failed. `settings` as `gpuemu.check` takes them:
        `layouts`, `sizes`, `precision`, `tolerance`, `invariants`, `kwargs`, `budget`; also `min_shape` and
        `max_shape`.
        """
        from gpuemu._cases.fuzzing import fuzz

        return fuzz(
            self,
            op,
            run_op,
            iterations,
            seed,
            framework,
            replay,
            fail_fast,
            progress,
            raise_on_failure,
            dtypes=dtypes,
            values=value_distribution,
            **settings,
        )

    # One case again.

    def reproduce(
        self, seed: int, op: str | None = None, *, minimized: bool = False, **settings: Any
    ) -> ValidationResult:
        """Run one case again, by its seed."""
        config = _drawn_from(**settings)
        fields = {"op_name": op, "seed": str(seed), "config": config, "minimized": minimized}
        result: ValidationResult = self._run("Reproduce", None, **fields)
        return result

    def inspect(
        self, seed: int, op: str | None = None, *, minimized: bool = False, **settings: Any
    ) -> Inspection:
        """Run one case again and return all of its tensors."""
        config = _drawn_from(**settings)
        fields = {"op_name": op, "seed": str(seed), "config": config, "minimized": minimized}
        inspection: Inspection = self._run("Inspect", None, **fields)
        return inspection

    def minimize(
        self,
        seed: int,
        op: str | None = None,
        *,
        strategy: str | None = None,
        max_runs: int | None = None,
        progress: Progress | None = None,
        **settings: Any,
    ) -> Minimized:
        """Shrink a failing case: `strategy` is combined, binary-search-dims or binary-search-values."""
        config = _drawn_from(**settings)
        fields = {
            "op_name": op,
            "seed": str(seed),
            "config": config,
            "strategy": strategy,
            "max_runs": max_runs,
        }
        minimized: Minimized = self._run("Minimize", progress, **fields)
        return minimized

    def replay_failures(
        self, op: str | None = None, limit: int | None = None, progress: Progress | None = None
    ) -> list[Replayed]:
        """Run stored failures again, the newest first."""
        replayed: list[Replayed] = self._run("ReplayFailures", progress, op_name=op, limit=limit)
        return replayed

    # What is stored.

    def get_result(self, seed: int, op: str | None = None) -> ValidationResult:
        """Return one stored result; a failure comes with its inputs, as far as they were kept."""
        result: ValidationResult = self._ask("GetResult", op_name=op, seed=str(seed))
        return result

    def list_results(
        self, op: str | None = None, limit: int | None = None, since_hours: float | None = None
    ) -> list[ValidationResult]:
        """Return stored results, newest first."""
        results: list[ValidationResult] = self._ask(
            "ListResults", op_name=op, limit=limit, since_hours=since_hours
        )
        return results

    def list_failures(
        self, op: str | None = None, limit: int | None = None, since_hours: float | None = None
    ) -> list[ValidationResult]:
        """Return stored failures, newest first."""
        results: list[ValidationResult] = self._ask(
            "ListFailures", op_name=op, limit=limit, since_hours=since_hours
        )
        return results

    def store_baseline(self, tag: str) -> BaselineSummary:
        """Keep the last run of each op under a tag."""
        (summary,) = self._ask("StoreBaseline", tag=tag)
        stored: BaselineSummary = summary
        return stored

    def list_baselines(self) -> list[BaselineSummary]:
        """Return the baselines there are, newest first."""
        baselines: list[BaselineSummary] = self._ask("ListBaselines")
        return baselines

    def delete_baseline(self, tag: str) -> None:
        """Remove a baseline."""
        self._ask("DeleteBaseline", tag=tag)

    def compare_baseline(
        self, tag: str, op: str | None = None, progress: Progress | None = None
    ) -> ComparisonReport:
        """Run the cases of a baseline again and compare errors."""
        comparison: ComparisonReport = self._run(
            "CompareBaseline", progress, baseline={"tag": tag}, op_name=op
        )
        return comparison

    # Jobs.

    def submit_job(self, kind: str, **fields: Any) -> JobStatus:
        """Do something long in the background.

        A request's type and fields, as `docs/reference/protocol.md` has them:
        `submit_job("FuzzOp", op_name="softmax", config={"iterations": 1000})`.
        """
        present = {name: value for name, value in fields.items() if value is not None}
        job = {"type": kind, "project": self.project, **present}
        status: JobStatus = self._connection.ask("SubmitJob", {"job": job})
        return status

    def job_status(self, job: int | JobStatus, wait: float = 0.0) -> JobStatus:
        """Ask how far a job is; returns at its end, or after `wait` seconds."""
        fields = {"job": str(_number(job)), "wait_ms": int(wait * 1000)}
        status: JobStatus = self._connection.ask("JobStatus", fields)
        return status

    def cancel_job(self, job: int | JobStatus) -> JobStatus:
        """Stop a job."""
        status: JobStatus = self._connection.ask("CancelJob", {"job": str(_number(job))})
        return status

    def list_jobs(self) -> list[JobStatus]:
        """Return the jobs there are, oldest first, without their answers."""
        jobs: list[JobStatus] = self._connection.ask("ListJobs", {})
        return jobs

    def wait_job(
        self, job: int | JobStatus, progress: Progress | None = None, timeout: float | None = None
    ) -> Any:
        """Wait for a job's end and return its answer.

        `TimeoutError` after `timeout` seconds; the job goes on.
        """
        return raised(self._watch(job, progress, timeout).result)

    def _watch(self, job: int | JobStatus, progress: Progress | None, timeout: float | None) -> JobStatus:
        deadline = None if timeout is None else time.monotonic() + timeout
        patience = _UNWATCHED if progress is None else _WATCHED
        wait = 0.0
        while True:
            status = self.job_status(job, wait)
            if progress is not None:
                progress(status)
            if status.state != "running":
                return status
            wait = patience
            if deadline is not None:
                wait = min(wait, deadline - time.monotonic())
                if wait <= 0:
                    raise TimeoutError(f"job {status.job} still runs after {timeout:g} s")

    def _run(self, kind: str, progress: Progress | None, **fields: Any) -> Any:
        """Do something long as a job, so that progress is seen and an interrupt stops it."""
        job = self.submit_job(kind, **fields)
        try:
            ended = self._watch(job, progress, None)
        except BaseException:
            # Whatever keeps the caller from waiting; a daemon that is gone has no job to cancel.
            with contextlib.suppress(ClientError):
                self.cancel_job(job)
            raise
        return raised(ended.result)


GpuemuClient = Client
"""The client by its long name."""


def _number(job: int | JobStatus) -> int:
    return job.job if isinstance(job, JobStatus) else job


def _outputs(tensors: Outgoing, output: Any) -> dict[str, Any]:
    if isinstance(output, Mapping):
        return {"outputs": tensors.add_named(output, "output")}
    return {"output": tensors.add(output, "output")}


def _drawn_from(
    *,
    iterations: int | None = None,
    seconds: float | None = None,
    seed: int | None = None,
    dtypes: Iterable[Any] | None = None,
    layouts: Iterable[str] | None = None,
    value_distribution: str | None = None,
    min_shape: Sequence[int] | None = None,
    max_shape: Sequence[int] | None = None,
    quick: bool = False,
) -> dict[str, Any]:
    """Return what cases are drawn from, as requests say it."""
    given = {
        "iterations": iterations,
        "seconds": seconds,
        "seed": None if seed is None else str(seed),
        "dtypes": None if dtypes is None else [dtype_name(dtype) for dtype in _listed(dtypes)],
        "layouts": None if layouts is None else list(_listed(layouts)),
        "values": value_distribution,
        "min_shape": None if min_shape is None else list(min_shape),
        "max_shape": None if max_shape is None else list(max_shape),
        "quick": quick or None,
    }
    return {name: value for name, value in given.items() if value is not None}


def _listed(values: Iterable[Any]) -> Iterable[Any]:
    """A single name is a list of one, not of its letters."""
    return [values] if isinstance(values, str) else values


def _result(tensors: Outgoing, result: ValidationResult | Mapping[str, Any]) -> dict[str, Any]:
    inputs = result.get("inputs")
    written = result.to_json() if isinstance(result, ValidationResult) else dict(result)
    written.pop("inputs", None)
    if inputs and written.get("outcome") == "failed":
        written["inputs"] = tensors.add_named(inputs, f"the inputs of seed {written.get('seed')}")
    return written
