"""Who runs the ranges of a campaign: this process, or something that has many."""

from __future__ import annotations

import queue
import threading
from dataclasses import dataclass
from typing import Any, Protocol

from gpuemu.campaigns.work import Runner, Work


@dataclass(frozen=True)
class Task:
    """A range to run, or a failure to shrink."""

    index: int = 0
    """The range, from 1."""
    op: str = ""
    seed: int = 0

    def perform(self, runner: Runner, told: Any) -> Any:
        """Do it."""
        return runner.run(self.index, told) if self.index else runner.minimise(self.op, self.seed)

    def __str__(self) -> str:
        """Return what it is."""
        return f"range {self.index}" if self.index else f"the failure of {self.op} with seed {self.seed}"


@dataclass(frozen=True)
class Done:
    """A task that ended: with what it gave, with an exception, or lost with its worker."""

    task: Task
    value: Any = None
    error: BaseException | None = None
    lost: str | None = None


class Engine(Protocol):
    """Workers, and the tasks that they have."""

    def start(self, work: Work) -> None:
        """Start workers."""

    def workers(self) -> int:
        """Return how many workers there are now."""

    def idle(self) -> int:
        """Return how many more tasks would be begun at once."""

    def submit(self, task: Task) -> None:
        """Give a task to a worker."""

    def wait(self, seconds: float) -> list[Done]:
        """Return the tasks that ended, at the latest after some time."""

    def progress(self) -> tuple[int, int]:
        """Return how many cases of tasks that have not ended were run, and how many of them failed."""

    def close(self) -> None:
        """End the workers, whatever they do."""


class Cancelled(Exception):
    """The task is not wanted any more."""


class LocalEngine:
    """One worker: a thread of this process."""

    def __init__(self) -> None:
        """Nothing is started yet."""
        self._runner: Runner | None = None
        self._thread: threading.Thread | None = None
        self._done: queue.SimpleQueue[Done] = queue.SimpleQueue()
        self._progress = (0, 0)
        self._cancelled = False

    def start(self, work: Work) -> None:
        """Begin in this process."""
        self._runner = work.open()

    def workers(self) -> int:
        """Return 1."""
        return 1

    def idle(self) -> int:
        """Return whether it is free."""
        return int(self._thread is None)

    def submit(self, task: Task) -> None:
        """Begin a thread for the task."""
        self._progress = (0, 0)
        self._thread = threading.Thread(target=self._work, args=(task,), name="gpuemu-campaign", daemon=True)
        self._thread.start()

    def wait(self, seconds: float) -> list[Done]:
        """Wait for the task."""
        try:
            done = self._done.get(timeout=seconds)
        except queue.Empty:
            return []
        self._thread = None
        self._progress = (0, 0)
        return [done]

    def progress(self) -> tuple[int, int]:
        """Return how far the task is."""
        return self._progress

    def close(self) -> None:
        """End the task before its next case."""
        self._cancelled = True
        if self._thread is not None:
            self._thread.join()
        if self._runner is not None:
            self._runner.close()

    def _tell(self, cases: int, failed: int) -> None:
        self._progress = (cases, failed)
        if self._cancelled:
            raise Cancelled

    def _work(self, task: Task) -> None:
        assert self._runner is not None
        try:
            self._done.put(Done(task, task.perform(self._runner, self._tell)))
        except BaseException as error:
            self._done.put(Done(task, error=error))
