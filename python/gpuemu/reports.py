"""What checks of callables in this process come to."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from gpuemu._client.record import Record
from gpuemu.errors import ClientError
from gpuemu.results import Finding, Neighbour, OpReport, ValidationResult

_MOST_SHOWN = 3


@dataclass(frozen=True)
class SmallestCase(Record):
    """The smallest case that still fails for the same reason, and a passing one next to it."""

    result: ValidationResult
    neighbour: Neighbour | None = None
    values_edited: bool = False
    """Whether its inputs were simplified beyond what a seed generates."""

    def __str__(self) -> str:
        """Return it in one line."""
        where = f"{self.result.dtype}, {self.result.sizes or 'no dims'}"
        if self.neighbour is None:
            return where
        near = self.neighbour
        return f"{where} (fails at {near.dimension}={near.fails}, passes at {near.dimension}={near.passes})"


@dataclass(frozen=True)
class CheckReport(Record):
    """How a callable did. `str(report)` is the message of the `AssertionError` that a failure raises."""

    op: str
    status: str
    """`passed`, `failed`, `error` (it could not be judged) or `unfinished`."""
    report: OpReport
    seed: int
    """The base seed of the run."""
    reproduce: str
    """The line that runs the first failing case again; the whole run where nothing failed."""
    smallest: SmallestCase | None = None
    warnings: list[str] = field(default_factory=list)
    """Things worth knowing: what was not exercised, weak checks, results that are not stored."""
    backward: CheckReport | None = None
    """How the gradients did, where they were checked."""

    @property
    def passed(self) -> bool:
        """Whether every case passed, those of the gradients included."""
        return self.status == "passed" and (self.backward is None or self.backward.passed)

    @property
    def failures(self) -> list[ValidationResult]:
        """The failing cases, the first 50 of each direction."""
        return self.report.failures + ([] if self.backward is None else self.backward.failures)

    @property
    def cases(self) -> int:
        """The number of cases that were run."""
        return self.report.cases

    def __bool__(self) -> bool:
        """Whether it passed."""
        return self.passed

    def raise_for_status(self) -> None:
        """Raise `AssertionError` for a wrong kernel, `ClientError` where nothing could be said about it."""
        __tracebackhide__ = True
        if self.passed:
            return
        statuses = (self.status, "passed" if self.backward is None else self.backward.status)
        if "failed" in statuses:
            raise AssertionError(str(self))
        errors = self.report.errors + (0 if self.backward is None else self.backward.report.errors)
        raise ClientError(str(self), code="ReferenceScriptFailed" if errors else "NotJudged")

    def __str__(self) -> str:
        """Return what was found, in a few lines."""
        lines = self._lines()
        if self.backward is not None and (self.status == "passed" or not self.backward.passed):
            lines += self.backward._lines()
        return "\n".join(lines)

    def _lines(self) -> list[str]:
        report = self.report
        dtypes = ", ".join(counts.dtype for counts in report.dtypes)
        if self.status == "passed":
            lines = [f"{self.op}: {report.passed} of {report.cases} cases passed ({dtypes})"]
        elif self.status == "failed":
            failing = ", ".join(counts.dtype for counts in report.dtypes if counts.failed)
            lines = [
                f"{self.op}: {report.failed} of {report.cases} cases failed ({failing}), {report.runner}"
            ]
            lines += _failure_lines(report.failures[0])
            rest = _other_findings(report.failures)
            if rest:
                lines.append(f"  other failures: {rest}")
            if self.smallest is not None:
                lines.append(f"  smallest failing case: {self.smallest}")
            lines.append(f"  reproduce: {self.reproduce}")
            if report.message is not None:
                lines += _message_lines(f"then it could not be judged any more: {report.message}")
        else:
            ended = "not judged" if self.status == "error" else self.status
            cases = "1 case" if report.cases == 1 else f"{report.cases} cases"
            lines = [f"{self.op}: {ended} after {cases}, {report.runner}"]
            lines += _message_lines(report.message or "")
        lines += [f"  warning: {warning}" for warning in self.warnings]
        if self.status == "passed" and report.not_checked:
            lines.append(f"  not checked: {', '.join(report.not_checked)}")
        return lines


def _message_lines(message: str) -> list[str]:
    return [f"  {line}" for line in message.splitlines()]


def _failure_lines(result: ValidationResult) -> list[str]:
    shapes = " ".join(f"{name}{list(shape)}" for name, shape in result.shapes)
    parameters = f", {result.parameters}" if result.parameters else ""
    place = f"{result.dtype}, {shapes}, layout {result.layout}, {result.values} values{parameters}"
    lines = [f"  {place}, seed {result.seed}"]
    if result.failing_case is not None:
        lines.append("    the case itself passed; an extra one that it leads to failed:")
    for finding in result.failures[:_MOST_SHOWN]:
        lines += finding_lines(finding)
    return lines


def finding_lines(finding: Finding) -> list[str]:
    """Return what is wrong, and the worst element."""
    words = finding.bug_class.replace("_", " ")
    first, *more = finding.explanation.splitlines() or [""]
    lines = [f"    {finding.check}: {first} [{words}]", *(f"      {line}" for line in more)]
    if finding.worst is not None:
        worst = finding.worst
        numbers = f"{worst.actual:.9g}, expected {worst.expected:.9g}"
        lines.append(
            f"    worst at {worst.index}: {numbers} (error {worst.error:.3g}, allowed {worst.allowed:.3g})"
        )
    return lines


def _other_findings(failures: list[ValidationResult]) -> str:
    known = {(finding.check, finding.bug_class) for finding in failures[0].failures}
    others: dict[tuple[str, str], int] = {}
    for result in failures[1:]:
        for finding in result.failures[:1]:
            key = (finding.check, finding.bug_class)
            if key not in known:
                others[key] = others.get(key, 0) + 1
    return ", ".join(
        f"{count} x {check} [{bug_class.replace('_', ' ')}]" for (check, bug_class), count in others.items()
    )


@dataclass(frozen=True)
class FuzzResults(Record):
    """How a callable did in `Client.fuzz_op_client_side`."""

    passed: int
    """Cases that passed."""
    failed: int
    """Cases that failed."""
    total: int
    """Cases that were run."""
    status: str
    """`passed`, `failed`, `error` (it could not be judged) or `unfinished`."""
    failures: list[ValidationResult]
    """The failing cases, the first 50."""
    seed: int
    """The base seed: the same seed gives the same cases."""
    run: int | None
    """The number under which the results are stored."""
    report: OpReport
    warnings: list[str] = field(default_factory=list)

    def __bool__(self) -> bool:
        """Whether every case passed and something was judged at all."""
        return self.all_passed

    @property
    def all_passed(self) -> bool:
        """Whether every case passed and something was judged at all."""
        return self.status == "passed"

    def __str__(self) -> str:
        """Return what was found, in a few lines."""
        lines = [f"{self.report.op}: {self.passed} of {self.total} cases passed, base seed {self.seed}"]
        if self.failures:
            lines += _failure_lines(self.failures[0])
        if self.status in ("error", "unfinished"):
            lines += _message_lines(f"{self.status}: {self.report.message}")
        return "\n".join(lines + [f"  warning: {warning}" for warning in self.warnings])


def smallest_case(found: dict[str, Any] | None) -> SmallestCase | None:
    """Read what the minimiser found."""
    if found is None:
        return None
    near = found["neighbour"]
    return SmallestCase(
        ValidationResult.from_json(found["minimized"]),
        None if near is None else Neighbour.from_json(near),
        found["values_edited"],
    )
