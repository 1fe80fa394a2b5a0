"""What all tests share: a seed, so that a run of the suites is the same as the one before."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest

from gpuemu._runs.defaults import Defaults, defaults


@pytest.fixture(autouse=True)
def fixed_seed(request: pytest.FixtureRequest) -> Iterator[None]:
    """Draw the cases of the frameworks' suites from one seed."""
    if "test_framework_" not in request.node.nodeid and "test_call_styles" not in request.node.nodeid:
        yield
        return
    with defaults(Defaults(seed=20261115)):
        yield


@pytest.fixture
def interruptible() -> Iterator[None]:
    """Let an interrupt raise, also where the suite was started in the background with interrupts ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)
