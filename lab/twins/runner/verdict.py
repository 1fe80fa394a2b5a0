"""What a door says of a twin, and what follows for the pair."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pair import Pair, Side

# A finding as a report of `gpuemu.check` has it, and those of further cases in one line.
_FINDING = re.compile(r"^\s*([a-z_]+): .*\[([a-z ]+)\]$", re.MULTILINE)
_FURTHER = re.compile(r"\d+ x ([a-z_]+) \[([a-z ]+)\]")


@dataclass(frozen=True)
class Verdict:
    """Of one twin: passed, failed, or neither if nothing can be said."""

    passed: bool = False
    failed: bool = False
    checks: frozenset[str] = frozenset()
    classes: frozenset[str] | None = frozenset()
    """None where the door does not say what a bug looks like."""
    note: str = ""
    """Why nothing can be said, or what a right twin was accused of."""


def unjudged(note: str) -> Verdict:
    """Return the verdict where there is none."""
    return Verdict(note=note.strip() or "nothing was said")


def of_findings(findings: Iterable[tuple[str, str]], note: str) -> Verdict:
    """Return the verdict on a twin that failed, by the checks and the classes of bugs that were named."""
    known = list(findings)
    if not known:
        return unjudged(note)
    checks, classes = zip(*known, strict=True)
    spelt = frozenset(bug_class.replace(" ", "_") for bug_class in classes)
    return Verdict(failed=True, checks=frozenset(checks), classes=spelt, note=note)


def of_text(text: str) -> Verdict:
    """Return the verdict on a twin that failed, by what was printed."""
    findings = _FINDING.findall(text) + _FURTHER.findall(text)
    return of_findings(findings, short(text))


def of_op_report(report: Mapping[str, Any]) -> Verdict:
    """Return the verdict of an op's report, as `gpuemu test` writes it."""
    if report["status"] == "passed":
        return Verdict(passed=True)
    found = [
        (finding["check"], finding["bug_class"], finding["explanation"])
        for failure in report["failures"]
        for finding in failure["failures"]
    ]
    note = found[0][2] if found else str(report.get("message") or report["status"])
    return of_findings([(check, bug_class) for check, bug_class, _ in found], short(note))


def short(text: str) -> str:
    """Return the beginning of a text in one line."""
    words = " ".join(text.split())
    return words if len(words) <= 200 else words[:199] + "…"


def row(
    pair: Pair, door: str, verdicts: Mapping[Side, Verdict], checks: Sequence[str] = ()
) -> dict[str, Any]:
    """Return what came of a pair at a door, as `cargo xtask twins` reads it."""
    right, wrong = verdicts["right"], verdicts["wrong"]
    expected = list(checks or pair.checks)
    named = wrong.failed and not wrong.checks.isdisjoint(expected)
    if pair.classes and wrong.classes is not None:
        named = named and not wrong.classes.isdisjoint(pair.classes)
    notes = []
    if not right.passed:
        notes.append(f"right twin: {right.note}")
    if not wrong.failed:
        notes.append(f"wrong twin: {'passed' if wrong.passed else wrong.note}")
    return {
        "pair": pair.name,
        "source": pair.source,
        "language": pair.language,
        "door": door,
        "caught": wrong.failed,
        "clean": right.passed,
        "named": named,
        "expected": list(dict.fromkeys([*expected, *pair.classes])),
        "said": sorted(wrong.checks | (wrong.classes or frozenset())),
        "notes": notes,
    }
