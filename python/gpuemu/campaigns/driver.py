"""The driver of a campaign: hands out ranges, keeps what comes back, and joins it at the end.

Everything that was kept is in the store of the daemon. A driver that is killed loses the ranges that were under way,
and another one goes on from there.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from gpuemu.campaigns.engine import Done, Engine, Task
from gpuemu.campaigns.store import CampaignStore, Status
from gpuemu.campaigns.work import Part, Work
from gpuemu.errors import ClientError
from gpuemu.reports import SmallestCase, smallest_case

_WAIT_SECONDS = 0.2


@dataclass(frozen=True)
class CampaignProgress:
    """How far a campaign is."""

    cases: int
    planned: int
    failed: int
    ranges: int
    """Ranges that are kept."""
    all_ranges: int
    workers: int
    lost: int
    """Ranges that were lost with their worker so far."""
    doing: str
    """`running`, or `minimising` once all ranges are kept."""


@dataclass(frozen=True)
class LostRange:
    """A range whose worker died; it was run again by another one."""

    range: int
    reason: str


Progress = Callable[[CampaignProgress], object]
"""Told now and then how far the campaign is. What it raises ends the campaign, which can be resumed."""


@dataclass
class Driver:
    """One campaign."""

    store: CampaignStore
    status: Status
    engine: Engine
    progress: Progress | None = None
    lost: list[LostRange] = field(default_factory=list)
    smallest: dict[str, SmallestCase] = field(default_factory=dict)

    def run(self, work: Work, minimize: bool) -> dict[str, Any]:
        """Run the ranges that are not kept yet, and return the report on the run."""
        waiting = deque(index for index in range(1, self.status.parts + 1) if index not in self.status.kept)
        try:
            # Where all is kept already, only joining is left.
            if waiting or minimize:
                self.engine.start(work)
            self._run_ranges(waiting)
            report = self.store.end(self.status.run)
            if minimize:
                self._minimise(report)
            return report
        finally:
            self.engine.close()

    def _run_ranges(self, waiting: deque[int]) -> None:
        kept = set(self.status.kept)
        running = 0
        cases = failed = 0
        while waiting or running:
            while waiting and self.engine.idle() > 0:
                self.engine.submit(Task(index=waiting.popleft()))
                running += 1
            for done in self.engine.wait(_WAIT_SECONDS):
                running -= 1
                if done.lost is not None:
                    # At the front: what is lost once should not be what is left at the end.
                    waiting.appendleft(self._once_more(done))
                    continue
                part = self._kept(done)
                kept.add(done.task.index)
                cases += sum(op["cases"] for op in part.report["ops"])
                failed += sum(op["failed"] for op in part.report["ops"])
            self._tell(cases, failed, len(kept), "running")

    def _kept(self, done: Done) -> Part:
        if done.error is not None:
            raise done.error
        part: Part = done.value
        self.store.keep(self.status.run, part)
        return part

    def _once_more(self, done: Done) -> int:
        index, reason = done.task.index, done.lost or ""
        if any(lost.range == index for lost in self.lost):
            raise ClientError(
                f"range {index} of {self.status.parts} was lost twice, each time with its worker: {reason}",
                code="WorkerLost",
                hint=f"one of its cases may end the process; resume={self.status.run} tries it again",
            )
        self.lost.append(LostRange(index, reason))
        return index

    def _minimise(self, report: dict[str, Any]) -> None:
        """Shrink the first failure of each op on the workers, and keep what comes of it."""
        first = {op["op"]: op["failures"][0] for op in report["ops"] if op["failures"]}
        waiting = deque(Task(op=op, seed=int(failure["seed"])) for op, failure in first.items())
        running = 0
        while waiting or running:
            while waiting and self.engine.idle() > 0:
                self.engine.submit(waiting.popleft())
                running += 1
            for done in self.engine.wait(_WAIT_SECONDS):
                running -= 1
                # The failure itself is stored: that it could not be shrunk changes no verdict.
                if done.error is None and done.lost is None and done.value is not None:
                    self.store.keep_minimized(done.value)
                    smallest = smallest_case(done.value)
                    if smallest is not None:
                        self.smallest[done.task.op] = smallest
            self._tell(0, 0, self.status.parts, "minimising")

    def _tell(self, cases: int, failed: int, ranges: int, doing: str) -> None:
        if self.progress is None:
            return
        now, failing = self.engine.progress()
        planned = self.status.planned
        done = self.status.planned if doing == "minimising" else cases + now
        self.progress(
            CampaignProgress(
                done, planned, failed + failing, ranges, self.status.parts, self.engine.workers(), len(self.lost), doing
            )
        )
