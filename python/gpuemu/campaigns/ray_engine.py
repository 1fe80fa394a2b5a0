"""Workers on a Ray cluster: each is an actor, a process of its own on whichever node has room for it."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Mapping
from typing import Any

from gpuemu import __version__
from gpuemu.campaigns.engine import CancelledError, Done, Task
from gpuemu.campaigns.work import Work
from gpuemu.errors import ClientError

_START_SECONDS = 120.0
"""How long the first worker may take to start."""

_DEATHS_AT_START = 3
"""So many workers in a row may die before they have begun: the node may have ended one, not all."""


class RayWorker:
    """The inside of an actor. Ray calls its methods from several threads."""

    def __init__(self, work: Work) -> None:
        """Begin the work."""
        self._runner = work.open()
        self._progress = (0, 0)
        self._cancelled = False

    def hello(self) -> str:
        """Return the version of gpuemu on this node."""
        return __version__

    def perform(self, task: Task) -> Any:
        """Do a task."""
        self._progress = (0, 0)
        return task.perform(self._runner, self._tell)

    def progress(self) -> tuple[int, int]:
        """Return how far the task is."""
        return self._progress

    def cancel(self) -> None:
        """End the task before its next case, and give everything back."""
        self._cancelled = True
        self._runner.close()

    def _tell(self, cases: int, failed: int) -> None:
        self._progress = (cases, failed)
        if self._cancelled:
            raise CancelledError


class _Actor:
    """A worker as its driver sees it."""

    def __init__(self, handle: Any, hello: Any) -> None:
        self.handle, self.hello = handle, hello
        self.ready = False
        self.task: Task | None = None
        self.future: Any = None
        self.asked: Any = None
        """A question for its progress that has no answer yet."""
        self.progress = (0, 0)


class RayEngine:
    """Actors on a cluster that is there, or on one that is started on this machine."""

    def __init__(
        self,
        address: str | None = None,
        workers: int | None = None,
        resources: Mapping[str, float] | None = None,
    ) -> None:
        """Start nothing yet. `resources` is what one worker needs, by the names that Ray has."""
        try:
            import ray
        except ImportError as error:
            raise ClientError(
                "Ray is not installed in this Python", code="ConfigError", hint="pip install ray"
            ) from error
        self._ray = ray
        self._address, self._wanted = address, workers
        self._resources = {"CPU": 1.0, **(resources or {})}
        self._ours = False
        self._actors: list[_Actor] = []
        self._work: Any = None
        self._started = 0.0
        self._died_at_start = 0

    def start(self, work: Work) -> None:
        """Connect to the cluster and start workers."""
        ray = self._ray
        if not ray.is_initialized():
            self._connect()
        self._work = ray.put(work)
        count = self._wanted if self._wanted is not None else self._room()
        self._started = time.monotonic()
        for _ in range(max(count, 1)):
            self._add()

    def _connect(self) -> None:
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        options: dict[str, Any] = {"log_to_driver": False, "logging_level": "ERROR"}
        if self._address is None:
            options |= {"include_dashboard": False}
            if self._wanted is not None:
                # On one machine, as many workers as were asked for: each has its part of the cores.
                options["num_cpus"] = max(int(self._wanted * self._resources["CPU"]), os.cpu_count() or 1)
        else:
            options["address"] = self._address
        try:
            self._ray.init(**options)
        except Exception as error:
            where = "on this machine" if self._address is None else f"at {self._address}"
            raise ClientError(
                f"there is no Ray cluster {where}: {error}",
                code="ConfigError",
                hint="`ray start --head` starts one; without --address gpuemu starts its own",
            ) from error
        self._ours = True

    def _room(self) -> int:
        """Return how many workers the cluster has room for."""
        there = self._ray.cluster_resources()
        room = [int(there.get(name, 0.0) / amount) for name, amount in self._resources.items() if amount > 0]
        return min(room, default=1)

    def _add(self) -> None:
        resources = dict(self._resources)
        options = {"num_cpus": resources.pop("CPU"), "num_gpus": resources.pop("GPU", 0)}
        # Two threads more than tasks: whoever asks for progress, or cancels, does not wait for the range.
        remote = self._ray.remote(RayWorker).options(
            **options, resources=resources or None, max_concurrency=3, max_restarts=0
        )
        handle = remote.remote(self._work)
        self._actors.append(_Actor(handle, handle.hello.remote()))

    def workers(self) -> int:
        """Return how many workers have answered."""
        return sum(actor.ready for actor in self._actors)

    def idle(self) -> int:
        """Return how many workers have nothing to do."""
        return sum(actor.ready and actor.task is None for actor in self._actors)

    def submit(self, task: Task) -> None:
        """Give a task to a worker that has none."""
        actor = next(actor for actor in self._actors if actor.ready and actor.task is None)
        actor.task, actor.progress = task, (0, 0)
        actor.future = actor.handle.perform.remote(task)

    def wait(self, seconds: float) -> list[Done]:
        """Return the tasks that ended; workers that died are replaced."""
        futures = [actor.future for actor in self._actors if actor.future is not None]
        futures += [actor.hello for actor in self._actors if not actor.ready]
        ended, _ = self._ray.wait(futures, num_returns=1, timeout=seconds)
        if ended:
            # All that ended meanwhile.
            ended, _ = self._ray.wait(futures, num_returns=len(futures), timeout=0)
        done = [found for actor in list(self._actors) if (found := self._look_at(actor, set(ended)))]
        if self.workers() == 0 and time.monotonic() - self._started > _START_SECONDS and not done:
            needed = ", ".join(f"{amount:g} {name}" for name, amount in self._resources.items())
            raise ClientError(
                f"no worker has started within {_START_SECONDS:g} s",
                code="TimedOut",
                hint=f"each needs {needed}; the cluster has {self._ray.cluster_resources()}",
            )
        self._ask_for_progress()
        return done

    def _look_at(self, actor: _Actor, ended: set[Any]) -> Done | None:
        """Return the task of a worker if it has ended; a worker that has died is replaced by another."""
        errors = self._ray.exceptions
        if not actor.ready and actor.hello in ended:
            try:
                version = self._ray.get(actor.hello)
            except errors.RayActorError as error:
                self._died_at_start += 1
                if _raised(error) or self._died_at_start >= _DEATHS_AT_START:
                    raise _refused(error) from error
                self._replace(actor)
                return None
            if version != __version__:
                raise ClientError(
                    f"a worker has gpuemu {version}, this is gpuemu {__version__}",
                    code="VersionMismatch",
                    hint="install the same version on all nodes",
                )
            actor.ready, self._died_at_start = True, 0
        if actor.future is None or actor.future not in ended:
            return None
        task, actor.task = actor.task, None
        future, actor.future = actor.future, None
        assert task is not None
        try:
            return Done(task, self._ray.get(future))
        except errors.RayTaskError as error:
            return Done(task, error=error.cause if isinstance(error.cause, ClientError) else error)
        except errors.RayError as error:
            self._replace(actor)
            return Done(task, lost=str(error).strip().splitlines()[0])

    def _replace(self, dead: _Actor) -> None:
        self._actors.remove(dead)
        self._add()

    def _ask_for_progress(self) -> None:
        busy = [actor for actor in self._actors if actor.task is not None]
        for actor in busy:
            if actor.asked is None:
                actor.asked = actor.handle.progress.remote()
        asked = [actor.asked for actor in busy]
        if not asked:
            return
        answered, _ = self._ray.wait(asked, num_returns=len(asked), timeout=0)
        for actor in busy:
            if actor.asked in answered:
                # Of a worker that has died its task says what became of it.
                with contextlib.suppress(self._ray.exceptions.RayError):
                    actor.progress = self._ray.get(actor.asked)
                actor.asked = None

    def progress(self) -> tuple[int, int]:
        """Return how far the tasks are."""
        running = [actor.progress for actor in self._actors if actor.task is not None]
        return sum(cases for cases, _ in running), sum(failed for _, failed in running)

    def close(self) -> None:
        """End the workers; the cluster too, where it was started for them."""
        farewells = [actor.handle.cancel.remote() for actor in self._actors if actor.ready]
        if farewells:
            # What a worker has put on its disk goes with it, if it still can.
            self._ray.wait(farewells, num_returns=len(farewells), timeout=5.0)
        for actor in self._actors:
            self._ray.kill(actor.handle)
        self._actors.clear()
        if self._ours:
            self._ray.shutdown()
            self._ours = False


def _raised(error: Exception) -> BaseException | None:
    """Return what the code of a worker raised when it began; nothing if its process died."""
    return getattr(error, "cause", None) or error.__cause__


def _refused(error: Exception) -> Exception:
    """Return why a worker could not begin: what its own code raised, if that is it."""
    cause = _raised(error)
    if isinstance(cause, ClientError):
        return cause
    return ClientError(f"a worker cannot begin: {error}", code="InternalError")
