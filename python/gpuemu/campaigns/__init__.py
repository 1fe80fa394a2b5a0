"""Campaigns: many cases of many ops, split into ranges that workers on one machine or many run.

    gpuemu.campaign(["softmax", "rmsnorm"], 100_000, engine="ray", address="auto")

The cases are exactly those of the same campaign on one machine, and so is the report.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gpuemu._arrays.numbers import seed_number, whole_number
from gpuemu._client.record import Record
from gpuemu._runs.op_run import chosen_adapter
from gpuemu._runs.settings import Settings, check_op, settings_of
from gpuemu.campaigns.archive import pack
from gpuemu.campaigns.driver import CampaignProgress, Driver, LostRange, Progress
from gpuemu.campaigns.engine import Engine, LocalEngine
from gpuemu.campaigns.store import CampaignStore, Status
from gpuemu.campaigns.work import CallableWork, ProjectWork, Work
from gpuemu.client import Client
from gpuemu.custom_op import CustomOp
from gpuemu.errors import ClientError
from gpuemu.frameworks.base import BaseAdapter
from gpuemu.reports import SmallestCase
from gpuemu.results import RunReport

__all__ = ["CampaignProgress", "CampaignReport", "LostRange", "campaign"]

Functions = Mapping[str | CustomOp, Callable[..., Any]]

RANGE_CASES = 64
"""Cases of each op in a range, unless there are workers with nothing to do."""

_RANGES_PER_WORKER = 4
_MOST_RANGES = 1 << 20


@dataclass(frozen=True)
class CampaignReport(Record):
    """What a campaign came to."""

    report: RunReport
    """The report on the run, as the same run on one machine gives it."""
    lost: list[LostRange] = field(default_factory=list)
    """Ranges whose worker died; each was run again."""
    smallest: dict[str, SmallestCase] = field(default_factory=dict)
    """By op, the smallest case that fails like the first one that did."""
    plain: dict[str, Any] = field(default_factory=dict, repr=False)
    """The report as JSON has it, with what the dataclass leaves out."""

    @property
    def passed(self) -> bool:
        """Whether every case of every op passed."""
        return self.report.passed

    @property
    def run(self) -> int:
        """The number under which the daemon keeps the run."""
        return self.report.run

    def __bool__(self) -> bool:
        """Whether it passed."""
        return self.passed

    def raise_for_status(self) -> None:
        """Raise `AssertionError` for a wrong kernel, `ClientError` where something could not be judged."""
        __tracebackhide__ = True
        if self.passed:
            return
        if any(op.failed for op in self.report.ops):
            raise AssertionError(str(self))
        raise ClientError(str(self), code="NotJudged")

    def __str__(self) -> str:
        """Return what was found, in a few lines."""
        lines = []
        for op in self.report.ops:
            counts = f"{op.failed} of {op.cases} cases failed" if op.failed else f"{op.cases} cases"
            lines.append(f"{op.op}: {op.status}, {counts}")
            if op.message is not None:
                lines.append(f"  {op.message}")
            if op.failures:
                lines.append(f"  {op.failures[0].summary}")
            if op.op in self.smallest:
                lines.append(f"  smallest failing case: {self.smallest[op.op]}")
        lines += [f"range {lost.range} was lost and run again: {lost.reason}" for lost in self.lost]
        return "\n".join(lines)


def campaign(
    ops: Sequence[str] | Functions | None = None,
    iterations: int = 100,
    *,
    engine: str = "local",
    address: str | None = None,
    workers: int | None = None,
    resources: Mapping[str, float] | None = None,
    seed: int | None = None,
    framework: str | BaseAdapter | None = None,
    project: str | os.PathLike[str] | None = None,
    client: Client | None = None,
    resume: int | bool | None = None,
    minimize: bool = True,
    progress: Progress | None = None,
    raises: bool = False,
    **settings: Any,
) -> CampaignReport:
    """Run many cases of many ops, on this machine or on a cluster, and keep all of them in one store.

    `ops` are names of ops that the project's `gpuemu.toml` defines, all of them if None, or functions by the
    name of the op that they are kernels of. `engine="ray"` starts `workers` actors on the cluster at
    `address`, each with `resources` (`{"GPU": 1}` puts them on nodes with a GPU); without an address a
    cluster is started on this machine. The cases depend on `seed` and `iterations` alone: whoever runs which,
    the report is the one that a single process gives.

    A worker that dies loses its range, which another one runs again, once. Results are kept as ranges end: a
    campaign whose driver was killed goes on with `resume=True`, or with the number of its run. `settings` as
    `gpuemu.check` takes them; ops of a project take `dtypes`, `layouts`, `values`, `min_shape` and
    `max_shape`.
    """
    __tracebackhide__ = True
    count = whole_number(iterations, "iterations", 1)
    chosen = _engine(engine, address, workers, resources)
    client = client if client is not None else Client(project=project)
    store = CampaignStore(client)
    functions = list(ops.items()) if isinstance(ops, Mapping) else None
    drawn = settings_of("campaign", settings)
    place = None if functions is not None else _project_of(client)
    status = _resumed(store, resume)
    if status is None:
        config: dict[str, Any] = {**_drawn(drawn, functions is None), "iterations": count}
        if seed is not None:
            # Otherwise the project's settings say which, or nobody does.
            config["seed"] = str(seed_number(seed))
        names = _names(functions) if functions is not None else [str(op) for op in ops or []]
        parts = range_count(count, workers)
        status = store.begin(names, config, parts, client_side=functions is not None)
    work = _work(status, functions, drawn, framework, place)
    driver = Driver(store, status, chosen, progress)
    report = driver.run(work, minimize)
    found = CampaignReport(RunReport.from_json(report), driver.lost, driver.smallest, report)
    if raises:
        found.raise_for_status()
    return found


def range_count(iterations: int, workers: int | None) -> int:
    """Return into how many ranges a campaign is split: enough for all workers, and none too large to lose."""
    enough = -(-iterations // RANGE_CASES)
    return max(1, min(iterations, max(enough, _RANGES_PER_WORKER * (workers or 1)), _MOST_RANGES))


def _engine(
    name: str, address: str | None, workers: int | None, resources: Mapping[str, float] | None
) -> Engine:
    if workers is not None:
        whole_number(workers, "workers", 1)
    if name == "ray":
        from gpuemu.campaigns.ray_engine import RayEngine

        return RayEngine(address, workers, resources)
    if name != "local":
        raise ValueError(f"unknown engine {name!r}; known: local, ray")
    if address is not None or resources is not None or workers not in (None, 1):
        raise ValueError('engine="local" is one worker in this process; engine="ray" has others')
    return LocalEngine()


def _resumed(store: CampaignStore, resume: int | bool | None) -> Status | None:
    if resume is None or resume is False:
        return None
    return store.get(None if resume is True else whole_number(resume, "resume"))


def _names(functions: Sequence[tuple[str | CustomOp, Callable[..., Any]]]) -> list[str]:
    if not functions:
        raise ValueError("ops is empty: nothing would be run")
    for op, function in functions:
        check_op(op)
        if not callable(function):
            raise TypeError(f"the op under test is a {type(function).__name__}; give a function")
    return [op if isinstance(op, str) else op.name for op, _ in functions]


def _drawn(settings: Settings, of_project: bool) -> dict[str, Any]:
    """Return what cases are drawn from; ops of a project are judged as the project says."""
    if of_project:
        own = Settings(
            dtypes=settings.dtypes,
            layouts=settings.layouts,
            values=settings.values,
            min_shape=settings.min_shape,
            max_shape=settings.max_shape,
        )
        if own != settings:
            raise TypeError(
                "ops of a project are judged as gpuemu.toml says; tolerances and the like are set there"
            )
    return {name: value for name, value in settings.drawn().items() if value}


def _work(
    status: Status,
    functions: Sequence[tuple[str | CustomOp, Callable[..., Any]]] | None,
    settings: Settings,
    framework: str | BaseAdapter | None,
    place: tuple[Path, str] | None,
) -> Work:
    if status.client_side != (functions is not None):
        kind = "functions" if status.client_side else "ops of the project"
        raise ClientError(f"the campaign of run {status.run} is one of {kind}", code="InvalidRequest")
    begun = {name: value for name, value in status.config.items() if name not in ("iterations", "seed")}
    if begun != _drawn(settings, functions is None):
        raise ClientError(
            f"the cases of the campaign of run {status.run} are drawn from {begun}", code="InvalidRequest"
        )
    if functions is not None:
        if _names(functions) != status.ops:
            raise ClientError(
                f"the campaign of run {status.run} is about {', '.join(status.ops)}", code="InvalidRequest"
            )
        adapter = chosen_adapter(framework)
        work = CallableWork(
            functions, settings, adapter.name, status.iterations, status.seed, status.parts, status.report
        )
        # What cannot be begun here cannot be begun anywhere, and here it says why.
        work.open().close()
        return work
    assert place is not None
    root, configuration = place
    return ProjectWork(pack(root), configuration, status.ops, status.config, status.parts)


def _project_of(client: Client) -> tuple[Path, str]:
    """Return the folder of a project and the name of its configuration."""
    reference = client.project
    if reference.get("config") is None:
        raise ClientError(
            f"there is no gpuemu.toml in {reference['root']} or above it: no op is defined",
            code="ConfigError",
            hint="name a project, or give functions: {'softmax': my_softmax}",
        )
    root, configuration = Path(reference["root"]), Path(reference["config"])
    return root, os.fspath(configuration.relative_to(root))
