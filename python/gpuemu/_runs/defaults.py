"""Defaults of checks that surroundings set, such as the test that is running."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass


@dataclass(frozen=True)
class Defaults:
    """What `gpuemu.check` does where its caller says nothing."""

    cases: int = 100
    seed: int | None = None
    replay: tuple[int, ...] = ()
    """Case seeds to run in place of new ones."""
    replay_failures: bool = False
    """Whether stored failures of the same callable are run first."""
    store: bool = True
    reproduce: str | None = None
    """The line that runs a case again, `{seed}` standing for its seed."""
    project: str | None = None
    """The folder whose project the results belong to."""
    owner: str | None = None
    """Who runs the check, such as a test's name."""


_CURRENT: ContextVar[Defaults | None] = ContextVar("gpuemu_defaults", default=None)


def current_defaults() -> Defaults:
    """Return the defaults of the innermost `defaults`."""
    return _CURRENT.get() or Defaults()


@contextmanager
def defaults(changed: Defaults) -> Iterator[None]:
    """Use other defaults until the end of the block."""
    token = _CURRENT.set(changed)
    try:
        yield
    finally:
        _CURRENT.reset(token)
