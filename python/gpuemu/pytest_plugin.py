"""The pytest plugin: options, a marker and a fixture for tests that call `gpuemu.check`.

Every failure is stored by the daemon. The next run of the same test tries the stored failures first, so that
a failure found once by a random seed is not lost. Workers of pytest-xdist share the daemon, which is started
once.
"""

from __future__ import annotations

import argparse
import os
import shlex
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

from gpuemu._runs.defaults import Defaults, defaults

if TYPE_CHECKING:
    from gpuemu.reports import CheckReport

_MARKER_OPTIONS = ("cases", "seed", "store", "replay_failures")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options of gpuemu."""
    group = parser.getgroup("gpuemu", "gpuemu: kernels under test")
    group.addoption(
        "--gpuemu-cases", type=_count, metavar="N", help="cases of each gpuemu.check that names no number"
    )
    group.addoption(
        "--gpuemu-seed", type=_seed, metavar="SEED", help="base seed of each gpuemu.check that names none"
    )
    group.addoption(
        "--gpuemu-replay",
        type=_seed,
        action="append",
        metavar="SEED",
        help="run the case of this seed and no others; may be given several times",
    )
    group.addoption(
        "--gpuemu-no-store",
        action="store_true",
        help="neither store results nor try stored failures first; no daemon is started",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Make the marker known."""
    config.addinivalue_line(
        "markers",
        "gpuemu(cases=N, seed=S, store=True, replay_failures=True): what gpuemu.check does in this test "
        "where it is not told",
    )


class Checks:
    """The fixture `gpuemu_check`: `gpuemu.check`, and the reports of what it did in this test."""

    def __init__(self) -> None:
        """Start without reports."""
        self.reports: list[CheckReport] = []

    def __call__(self, op: Any, fn: Any, **options: Any) -> CheckReport:
        """Run `gpuemu.check` and keep its report; a failure fails the test."""
        __tracebackhide__ = True
        from gpuemu import check

        raises = options.pop("raises", True)
        report = check(op, fn, raises=False, **options)
        self.reports.append(report)
        if raises and report.failures:
            pytest.fail(str(report), pytrace=False)
        if raises:
            report.raise_for_status()
        return report


@pytest.fixture
def gpuemu_check() -> Checks:
    """Return `gpuemu.check` for this test, which also keeps its reports."""
    return Checks()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup(item: pytest.Item) -> Iterator[None]:
    """Set the defaults of `gpuemu.check` for the fixtures of one test."""
    with defaults(_defaults_of(item)):
        yield


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """Set the defaults of `gpuemu.check` for one test."""
    with defaults(_defaults_of(item)):
        yield


def _defaults_of(item: pytest.Item) -> Defaults:
    options = item.config.option
    chosen: dict[str, Any] = {}
    for marker in item.iter_markers("gpuemu"):
        if marker.args:
            pytest.fail(f"{item.nodeid}: the marker gpuemu takes keywords only", pytrace=False)
        for name, value in marker.kwargs.items():
            if name not in _MARKER_OPTIONS:
                known = ", ".join(_MARKER_OPTIONS)
                text = f"{item.nodeid}: the marker gpuemu has no '{name}'; it has {known}"
                pytest.fail(text, pytrace=False)
            # The nearest marker comes first.
            chosen.setdefault(name, value)
    if options.gpuemu_cases is not None:
        chosen["cases"] = options.gpuemu_cases
    if options.gpuemu_seed is not None:
        chosen["seed"] = options.gpuemu_seed
    store = chosen.get("store", True) and not options.gpuemu_no_store
    return Defaults(
        cases=chosen.get("cases", Defaults.cases),
        seed=chosen.get("seed"),
        replay=tuple(options.gpuemu_replay or ()),
        replay_failures=store and chosen.get("replay_failures", True),
        store=store,
        reproduce=f"pytest {shlex.quote(_node(item))} --gpuemu-replay={{seed}}",
        project=str(item.config.rootpath),
        owner=item.nodeid,
    )


def _node(item: pytest.Item) -> str:
    """Return the test as it is named on a command line in the current folder."""
    path, separator, rest = item.nodeid.partition("::")
    full = item.config.rootpath / path
    return f"{os.path.relpath(full)}{separator}{rest}"


def _seed(text: str) -> int:
    number = _number(text, 0)
    if number is None or not 0 <= number < 1 << 64:
        raise argparse.ArgumentTypeError(f"the seed {text} is not a whole number of 64 bits")
    return number


def _count(text: str) -> int:
    number = _number(text, 10)
    if number is None or number < 1:
        raise argparse.ArgumentTypeError(f"{text} is not a number of cases; give 1 or more")
    return number


def _number(text: str, base: int) -> int | None:
    try:
        return int(text, base)
    except ValueError:
        return None
