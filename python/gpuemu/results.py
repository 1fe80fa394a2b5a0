"""What the daemon answers, as frozen dataclasses.

Each also indexes like the JSON object that it was read from: `result["outcome"]` is `result.outcome`. Seeds
and numbers of runs and jobs are ints, `"NaN"` and `"Infinity"` are floats, tensors are NumPy arrays.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy.typing as npt

from gpuemu._arrays.tensors import Bytes, read_tensors, tensors_as_text
from gpuemu._client.record import Record, many, number, one, read_with, whole_number
from gpuemu.emulation import CodePlace
from gpuemu.errors import ClientError, ConnectionError

Arrays = dict[str, npt.NDArray[Any]]
"""Arrays by name."""


def _shapes(values: list[Any]) -> list[tuple[str, tuple[int, ...]]]:
    return [(name, tuple(shape)) for name, shape in values]


def _settings(value: Mapping[str, Any]) -> dict[str, Any]:
    settings = dict(value)
    if settings.get("seed") is not None:
        settings["seed"] = int(settings["seed"])
    return settings


def _arrays(**options: Any) -> Any:
    """Declare tensors by name."""
    metadata = {
        "read": lambda value: None if value is None else read_tensors(value),
        "write": tensors_as_text,
    }
    return field(metadata=metadata, **options)


@dataclass(frozen=True)
class Pong(Record):
    """The daemon is there."""

    version: str
    protocol_version: int
    uptime_seconds: int


@dataclass(frozen=True)
class WorstElement(Record):
    """The element that is furthest beyond what is allowed."""

    index: list[int]
    actual: float = number()
    expected: float = number()
    error: float = number()
    allowed: float = number()


@dataclass(frozen=True)
class KernelPlace(CodePlace):
    """A place in the code of a compiled kernel, or the line that launched it."""

    ptx: str | None = None
    """The PTX file as the project names it; None where the kernel has one source only."""


@dataclass(frozen=True)
class Finding(Record):
    """One thing that is wrong."""

    check: str
    tensor: str
    mismatched: int
    elements: int
    bug_class: str
    explanation: str
    worst: WorstElement | None = one(WorstElement, default=None)
    places: list[KernelPlace] = many(KernelPlace, default_factory=list)
    """Where in the code, after it the other side, as of a race, and the line that launched the kernel."""


@dataclass(frozen=True)
class ElementCounts(Record):
    """Numbers of elements by how they were judged."""

    compared: int = 0
    mismatched: int = 0
    undetermined: int = 0
    excused: int = 0


@dataclass(frozen=True)
class ValidationResult(Record):
    """The verdict on one case, with what is needed to run it again."""

    op: str
    outcome: str
    """`passed`, `failed`, `undetermined` or `error`."""
    passed: bool
    dtype: str
    sizes: str
    layout: str
    values: str
    parameters: str
    tolerance: str
    runner: str
    not_checked: list[str]
    case: Any
    """Everything that decides the case."""
    time: int
    """Milliseconds since 1970."""
    replay: str
    """The command that runs it again."""
    seed: int = whole_number()
    shapes: list[tuple[str, tuple[int, ...]]] = read_with(_shapes)
    failures: list[Finding] = many(Finding)
    """What is wrong, the gravest first."""
    max_abs_diff: float = number()
    max_rel_diff: float = number()
    max_ulp_diff: float = number()
    tolerance_share: float = number()
    """Largest share of what is allowed."""
    elements: ElementCounts = one(ElementCounts)
    message: str | None = None
    """Why nothing could be said, or what went wrong."""
    warnings: list[str] = field(default_factory=list)
    failing_case: Any = None
    run: int | None = whole_number(default=None)
    minimized: bool = False
    client_side: bool = False
    """Whether a client ran and judged it in its own process."""
    settings: dict[str, Any] = read_with(_settings, default_factory=dict)
    inputs: Arrays | None = _arrays(default=None)
    """Its inputs as they were kept, where one stored failure is asked for."""

    def __bool__(self) -> bool:
        """Whether it passed."""
        return self.passed

    def __str__(self) -> str:
        """Return the verdict in a few lines."""
        return self.summary

    @property
    def summary(self) -> str:
        """The verdict in a few lines: what is wrong, where, and how to run it again."""
        lines = [f"{self.op}: {self.outcome} ({self.dtype}, {self.sizes}, {self.layout}, seed {self.seed})"]
        if self.message:
            lines.append(f"  {self.message}")
        for finding in self.failures:
            lines.append(f"  {finding.check}: {finding.explanation} [{finding.bug_class}]")
            if (worst := finding.worst) is not None:
                at = f"worst at {worst.index}: {worst.actual!r}, expected {worst.expected!r}"
                lines.append(f"    {at} (error {worst.error!r}, allowed {worst.allowed!r})")
        return "\n".join(lines)


@dataclass(frozen=True)
class DtypeCounts(Record):
    """Cases of one dtype."""

    dtype: str
    cases: int
    failed: int
    max_abs_diff: float = number()
    judged: int = 0


@dataclass(frozen=True)
class CaseSummary(Record):
    """One case of a run in short."""

    outcome: str
    case: Any
    max_abs_diff: float = number()
    max_ulp_diff: float = number()


@dataclass(frozen=True)
class OpReport(Record):
    """How one op did in a run."""

    op: str
    status: str
    """`passed`, `failed`, `expected_failure`, `error` or `unfinished`."""
    line: int
    runner: str
    reference: str
    planned: int
    cases: int
    passed: int
    failed: int
    undetermined: int
    errors: int
    warnings: list[str]
    not_checked: list[str]
    regressed: bool
    seconds: float
    dtypes: list[DtypeCounts] = many(DtypeCounts)
    max_abs_diff: float = number()
    max_rel_diff: float = number()
    max_ulp_diff: float = number()
    tolerance_share: float = number()
    failures: list[ValidationResult] = many(ValidationResult)
    case_results: list[CaseSummary] = many(CaseSummary)
    message: str | None = None


@dataclass(frozen=True)
class OpComparison(Record):
    """One op compared with a baseline, over the same cases."""

    op: str
    status: str
    """`same`, `improved`, `regressed` or `not_comparable`."""
    cases: int
    newly_failing: int
    failing: int
    before_abs: float = number()
    now_abs: float = number()
    before_ulp: float = number()
    now_ulp: float = number()
    worst: ValidationResult | None = one(ValidationResult, default=None)
    message: str | None = None


@dataclass(frozen=True)
class ComparisonReport(Record):
    """A comparison with a baseline."""

    baseline: str
    threshold: float
    fails: bool
    """Whether a regression fails the run."""
    ops: list[OpComparison] = many(OpComparison)


@dataclass(frozen=True)
class RunReport(Record):
    """What a run found."""

    version: int
    gpuemu: str
    project: str
    config: str
    time: int
    seconds: float
    mode: str
    passed: bool
    warnings: list[str]
    run: int = whole_number()
    seed: int = whole_number()
    settings: dict[str, Any] = read_with(_settings)
    ops: list[OpReport] = many(OpReport)
    comparison: ComparisonReport | None = one(ComparisonReport, default=None)


@dataclass(frozen=True, eq=False)
class TestCase(Record):
    """A generated case: give `inputs` and `kwargs` to a kernel, and its output to `Client.submit_output`."""

    __test__: ClassVar[bool] = False
    """Not a test, whatever its name begins with."""

    op_name: str
    dtype: str
    kwargs: dict[str, Any]
    case: Any
    """Everything that decides the case."""
    seed: int = whole_number()
    inputs: Arrays = _arrays()
    settings: dict[str, Any] = field(default_factory=dict)
    """What the case was drawn from, as keyword arguments of `Client.submit_output`."""


@dataclass(frozen=True)
class Neighbour(Record):
    """A passing case one step away from the smallest failing one."""

    dimension: str
    fails: int
    passes: int


@dataclass(frozen=True, eq=False)
class Minimized(Record):
    """The smallest failing case that was found."""

    runs: int
    values_edited: bool
    original: ValidationResult = one(ValidationResult)
    minimized: ValidationResult = one(ValidationResult)
    inputs: Arrays = _arrays()
    neighbour: Neighbour | None = one(Neighbour, default=None)


@dataclass(frozen=True)
class InspectionStep(Record):
    """One check of a case."""

    check: str
    status: str
    """`passed`, `failed`, `not reached` or `not checked`."""
    detail: str


@dataclass(frozen=True, eq=False)
class Inspection(Record):
    """A case with its tensors and the checks it went through."""

    shown: Any
    parameters: dict[str, Any]
    atomics: bool
    result: ValidationResult = one(ValidationResult)
    steps: list[InspectionStep] = many(InspectionStep)
    inputs: Arrays = _arrays()
    outputs: Arrays = _arrays()
    expected: Arrays = _arrays()
    """What the reference says, in float64."""
    allowed: Arrays = _arrays()
    """How far each element may be from that, in float64."""
    output_dtypes: dict[str, str] = read_with(dict)


@dataclass(frozen=True)
class Replayed(Record):
    """A stored failure that was run again."""

    status: str
    """`FIXED`, `FAILED`, `ERROR`, or `SKIPPED` where only the client that found it can run it."""
    result: ValidationResult = one(ValidationResult)


@dataclass(frozen=True)
class BaselineSummary(Record):
    """A stored baseline."""

    tag: str
    time: int
    ops: int
    cases: int
    failing: int = 0


@dataclass(frozen=True)
class OpSummary(Record):
    """One op of a project."""

    name: str
    line: int
    source: str
    reference: str
    signature: str
    dtypes: list[str]
    files: list[str]


@dataclass(frozen=True)
class StoredCounts(Record):
    """Entries of the daemon's store."""

    results: int = 0
    failures: int = 0
    baselines: int = 0
    artifacts: int = 0
    artifact_baselines: int = 0


@dataclass(frozen=True)
class DaemonStatus(Record):
    """How the daemon is."""

    version: str
    pid: int
    uptime_seconds: int
    home: str
    running_jobs: int
    distrusted_scripts: list[Any]
    stored: StoredCounts = one(StoredCounts)


@dataclass(frozen=True)
class JobStatus(Record):
    """How far a job is."""

    kind: str
    state: str
    """`running`, `done` or `cancelled`."""
    done: int
    total: int
    failures: int
    message: str
    job: int = whole_number()
    result: Any = read_with(lambda value: read_answer(value), default=None)
    """Its answer, once it has one: what the request would have returned, or a `ClientError`."""


_LISTS: dict[str, tuple[str, type[Record]]] = {
    "Results": ("results", ValidationResult),
    "Replayed": ("failures", Replayed),
    "Baselines": ("baselines", BaselineSummary),
    "Ops": ("ops", OpSummary),
    "Jobs": ("jobs", JobStatus),
    "TestBatch": ("cases", TestCase),
}

_OBJECTS: dict[str, tuple[str, type[Record]]] = {
    "Status": ("status", DaemonStatus),
    "ValidationResult": ("result", ValidationResult),
    "Report": ("report", RunReport),
    "Minimized": ("minimized", Minimized),
    "Inspection": ("inspection", Inspection),
    "Comparison": ("comparison", ComparisonReport),
    "TestCase": ("case", TestCase),
    "Job": ("job", JobStatus),
}


def read_answer(answer: Mapping[str, Any], payload: Bytes | None = None) -> Any:
    """Return what an answer says: a dataclass, a list of them, or an error, which is not raised."""
    kind = answer.get("type")
    if kind == "Error":
        return ClientError(answer["message"], code=answer["code"], hint=answer.get("hint"))
    if kind == "Ok":
        return None
    if kind == "Pong":
        return Pong.from_json(answer)
    if kind == "Recorded":
        return int(answer["run"])
    if kind in _LISTS:
        name, record = _LISTS[kind]
        return [record.from_json(_with_tensors(value, payload)) for value in answer[name]]
    if kind in _OBJECTS:
        name, record = _OBJECTS[kind]
        return record.from_json(_with_tensors(answer[name], payload))
    raise ConnectionError(f"the daemon's answer cannot be read: its type is {kind!r}", code="Unreadable")


def _with_tensors(value: Mapping[str, Any], payload: Bytes | None) -> Mapping[str, Any]:
    if payload is None or payload.size == 0 or not value.get("inputs"):
        return value
    return {**value, "inputs": read_tensors(value["inputs"], payload)}
