"""What the PTX machine is told, and what it saw while it ran a compiled kernel."""

from __future__ import annotations

import contextlib
import json
import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from functools import lru_cache
from pathlib import Path
from types import FrameType
from typing import Any, TypedDict

from gpuemu._client.record import Record, many, one
from gpuemu.errors import KernelError, KernelFindingsError

CHECKS = ("memory", "init", "race", "sync")
"""Groups of checks. The bounds of memory are always checked."""

TENSOR_CORES = ("a100", "h100", "ieee")
"""Whose tensor cores: two chips, bit for bit, or fused multiply-adds in float32."""

APPROXIMATIONS = ("chip", "correct")
"""Approximated functions as the chip has them, bit for bit, or correctly rounded."""

_SHOWN_FINDINGS = 5


class MachineKeywords(TypedDict, total=False):
    """The fields of `MachineOptions`, as functions take them that launch kernels."""

    checks: Sequence[str]
    tensor_core: str
    approximation: str
    order: str | int
    workers: int
    most_steps: int | None
    most_findings: int


@dataclass(frozen=True)
class MachineOptions:
    """How the machine runs a kernel."""

    checks: Sequence[str] = CHECKS
    """What is checked beside the bounds of memory."""
    tensor_core: str = "h100"
    """One of `TENSOR_CORES`."""
    approximation: str = "chip"
    """One of `APPROXIMATIONS`."""
    order: str | int = "ascending"
    """The order in which blocks begin: `"ascending"`, `"descending"`, or a seed to shuffle them with."""
    workers: int = 0
    """Threads of this process that run blocks; 0 for all cores."""
    most_steps: int | None = None
    """Instructions of warps without any block coming to its end, after which a kernel counts as endless."""
    most_findings: int = 100
    """Findings that are kept, by place in the code."""

    def __post_init__(self) -> None:
        """Refuse names that are not known."""
        if isinstance(self.checks, str):
            raise TypeError(f"checks is the text {self.checks!r}; give a list, such as [{self.checks!r}]")
        for check in self.checks:
            _known("check", check, CHECKS)
        _known("tensor core", self.tensor_core, TENSOR_CORES)
        _known("approximation", self.approximation, APPROXIMATIONS)
        if not isinstance(self.order, int):
            _known("order", self.order, ("ascending", "descending"))

    def to_json(self) -> str:
        """Return them as the machine reads them."""
        written = {**vars(self), "checks": list(self.checks)}
        return json.dumps({name: value for name, value in written.items() if value is not None})


def _known(what: str, name: str, known: Sequence[str]) -> None:
    if name not in known:
        raise ValueError(f"unknown {what} {name!r}; known: {', '.join(known)}")


@dataclass(frozen=True)
class CodePlace(Record):
    """A place in the code of a kernel."""

    instruction: str
    ptx_line: int
    file: str | None = None
    line: int | None = None

    def __str__(self) -> str:
        """Return the line of the source, where it is known, and that of the PTX."""
        own = f"PTX line {self.ptx_line}"
        return own if self.file is None else f"{self.file}:{self.line} ({own})"


@dataclass(frozen=True)
class ThreadPlace(Record):
    """A thread of a launch."""

    block: list[int]
    thread: list[int]
    warp: int
    lane: int

    def __str__(self) -> str:
        """Return its block, its place in it and its lane."""
        return f"block {tuple(self.block)}, thread {tuple(self.thread)}, warp {self.warp}, lane {self.lane}"


@dataclass(frozen=True)
class OtherAccess(Record):
    """The other side of a finding: who wrote last, or with whom a race is."""

    place: CodePlace = one(CodePlace)
    thread: ThreadPlace = one(ThreadPlace)
    write: bool = False

    def __str__(self) -> str:
        """Return what it did, where and by whom."""
        return f"{'written' if self.write else 'read'} at {self.place} by {self.thread}"


@dataclass(frozen=True)
class KernelFinding(Record):
    """One thing that was wrong, the first time that it was seen at its place."""

    fault: str
    """What was wrong, such as `out_of_bounds` or `race`."""
    message: str
    occurrences: int
    place: CodePlace | None = one(CodePlace, default=None)
    thread: ThreadPlace | None = one(ThreadPlace, default=None)
    address: int | None = None
    buffer: str | None = None
    """The argument or variable that the address belongs to, or fell outside of."""
    offset: int | None = None
    """Bytes from the beginning of the buffer."""
    other: OtherAccess | None = one(OtherAccess, default=None)

    text: str = ""
    """For people: what was wrong, where, by whom, with whom and how often."""

    def __str__(self) -> str:
        """Return what was wrong, where, by whom and how often."""
        return f"{self.fault}: {self.text or self.message}"


@dataclass(frozen=True)
class Statistics(Record):
    """How much work a launch was."""

    blocks: int = 0
    warp_instructions: int = 0
    lane_operations: int = 0


@dataclass(frozen=True)
class KernelLaunch(Record):
    """A launch that came to its end."""

    kernel: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    findings: list[KernelFinding] = many(KernelFinding)
    more_findings: int = 0
    """How many there were beyond those kept."""
    not_checked: list[str] = field(default_factory=list)
    """What could not be looked at: without findings the launch is not known to be right."""
    printed: str = ""
    """What the kernel printed."""
    statistics: Statistics = one(Statistics, default_factory=Statistics)
    config: str | None = None
    """Which config of an autotuned kernel it was."""
    file: str | None = None
    """The file of the code that launched it."""
    line: int | None = None
    """The line of the launch, from 1."""
    outputs_known: bool = False
    """Whether it was told which of its arrays are only written."""

    @classmethod
    def seen(cls, report: str, **known: Any) -> KernelLaunch:
        """Make one of what the machine reports, and of what it does not know."""
        seen = json.loads(report)
        texts = seen.pop("texts")
        findings = [{**found, "text": text} for found, text in zip(seen["findings"], texts, strict=True)]
        return cls.from_json({**known, **seen, "findings": findings})

    @property
    def title(self) -> str:
        """The kernel, and the config where it has one."""
        return self.kernel if self.config is None else f"{self.kernel} ({self.config})"


def raise_findings(launches: Sequence[KernelLaunch]) -> None:
    """Raise `KernelFindingsError` if one of the launches has any, `KernelError` if one was not checked."""
    wrong = [launch for launch in launches if launch.findings]
    if not wrong:
        for launch in launches:
            if launch.not_checked:
                missing = "; ".join(launch.not_checked)
                raise KernelError(f"{launch.title} could not be checked: {missing}", code="NotChecked")
        return
    lines: list[str] = []
    for launch in wrong:
        count = len(launch.findings) + launch.more_findings
        place = "" if launch.file is None else f", launched at {launch.file}:{launch.line}"
        lines.append(f"{launch.title}: {count} finding{'' if count == 1 else 's'}, grid {launch.grid}{place}")
        lines += [str(finding) for finding in launch.findings[:_SHOWN_FINDINGS]]
        if count > _SHOWN_FINDINGS:
            lines.append(f"... and {count - _SHOWN_FINDINGS} more")
    raise KernelFindingsError("\n".join(lines), [finding for launch in wrong for finding in launch.findings])


_witness: list[str] | None = None


@contextlib.contextmanager
def witnessed() -> Iterator[list[str]]:
    """Take the launches of a function that is tried, as JSON: their findings go to its verdict.

    They are not raised meanwhile, so that the function comes to its end and its results are judged as well.
    Launches of all threads are taken.
    """
    global _witness
    before, _witness = _witness, []
    try:
        yield _witness
    finally:
        _witness = before


def finish(launch: KernelLaunch, raises: bool) -> bool:
    """Show what a launch printed and hand it to whoever tries the code; whether to raise its findings."""
    if launch.printed:
        sys.stdout.write(launch.printed)
    # Findings that are left to the caller are no part of a verdict, and it claims no check of them.
    if _witness is None or not raises:
        return raises
    told = {
        "kernel": launch.title,
        "file": launch.file,
        "line": launch.line,
        "outputs_known": launch.outputs_known,
        "findings": [asdict(finding) for finding in launch.findings],
    }
    _witness.append(json.dumps(told))
    # Never a pass: what could not be checked is raised all the same.
    return bool(launch.not_checked) and not launch.findings


def launching_line() -> tuple[str, int] | None:
    """Return the file and the line of the caller's code that launches a kernel."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename.startswith(_inner_folders()):
        frame = frame.f_back
    return None if frame is None else (frame.f_code.co_filename, frame.f_lineno)


@lru_cache(maxsize=2)
def _folders(with_triton: bool) -> tuple[str, ...]:
    triton = sys.modules["triton"].__file__ if with_triton else None
    packages = [__file__, *([triton] if triton else [])]
    return tuple(str(Path(file).parent) + os.sep for file in packages)


def _inner_folders() -> tuple[str, ...]:
    """Return the folders of packages whose frames lie between a launch and the machine."""
    return _folders("triton" in sys.modules)
