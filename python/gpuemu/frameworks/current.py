"""The framework that is used where none is named."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from gpuemu.frameworks.base import BaseAdapter

_CURRENT: ContextVar[BaseAdapter | None] = ContextVar("gpuemu_framework", default=None)


def current_adapter() -> BaseAdapter | None:
    """Return the adapter of the innermost `use`, if there is one in this thread or task."""
    return _CURRENT.get()


@contextmanager
def use(adapter: BaseAdapter) -> Iterator[None]:
    """Use a framework where none is named, until the end of the block."""
    token = _CURRENT.set(adapter)
    try:
        yield
    finally:
        _CURRENT.reset(token)
