"""What the PTX machine is told, and what it saw while it ran a compiled kernel."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from gpuemu._record import Record, many, one
from gpuemu.errors import KernelError, KernelFindingsError

CHECKS = ("memory", "init", "race", "sync")
"""Groups of checks. The bounds of memory are always checked."""

TENSOR_CORES = ("a100", "h100", "ieee")
"""Whose tensor cores: two chips, bit for bit, or fused multiply-adds in float32."""

APPROXIMATIONS = ("chip", "correct")
"""Approximated functions as the chip has them, bit for bit, or correctly rounded."""

_SHOWN_FINDINGS = 5


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
        written: dict[str, Any] = {
            "checks": list(self.checks),
            "tensor_core": self.tensor_core,
            "approximation": self.approximation,
            "order": self.order,
            "workers": self.workers,
            "most_findings": self.most_findings,
        }
        if self.most_steps is not None:
            written["most_steps"] = self.most_steps
        return json.dumps(written)


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

    def __str__(self) -> str:
        """Return what was wrong, where, by whom and how often."""
        lines = [f"{self.fault}: {self.message}"]
        if self.place is not None:
            lines.append(f"  at {self.place}: {self.place.instruction}")
        if self.thread is not None:
            times = "" if self.occurrences == 1 else f", {self.occurrences} times in all"
            lines.append(f"  by {self.thread}{times}")
        if self.other is not None:
            lines.append(f"  {self.other}")
        return "\n".join(lines)


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
        lines.append(f"{launch.title}: {count} finding{'' if count == 1 else 's'}, grid {launch.grid}")
        lines += [str(finding) for finding in launch.findings[:_SHOWN_FINDINGS]]
        if count > _SHOWN_FINDINGS:
            lines.append(f"... and {count - _SHOWN_FINDINGS} more")
    raise KernelFindingsError("\n".join(lines), [finding for launch in wrong for finding in launch.findings])
