"""`Client.fuzz_op_client_side`: many cases for a function of this process, every result kept."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from gpuemu import _native
from gpuemu._arrays.numbers import seed_number, seed_numbers
from gpuemu._client.recording import Recorder
from gpuemu._runs.op_run import OpRun, Plan, Progress, chosen_adapter, random_seed
from gpuemu._runs.settings import Settings, check_op, opened, settings_of
from gpuemu._runs.signature import accepted
from gpuemu.custom_op import CustomOp
from gpuemu.errors import ValidationError
from gpuemu.frameworks.base import BaseAdapter
from gpuemu.reports import FuzzResults
from gpuemu.results import OpReport

if TYPE_CHECKING:
    from gpuemu.client import Client


def fuzz(
    client: Client,
    op: str | CustomOp,
    run_op: Callable[..., Any],
    iterations: int,
    seed: int | None,
    framework: str | BaseAdapter | None,
    replay: int | Sequence[int] | None,
    fail_fast: bool,
    progress: Progress | None,
    raise_on_failure: bool,
    **settings: Any,
) -> FuzzResults:
    """Run the cases and hand the verdicts over to the daemon."""
    check_op(op)
    drawn = settings_of("fuzz_op_client_side", settings)
    if drawn.tolerance is None and isinstance(op, CustomOp):
        drawn = dataclasses.replace(drawn, tolerance=op.tolerance)
    name = op if isinstance(op, str) else op.name
    options = drawn.options(client.project, _line(op, drawn, framework))
    ready = opened(op, options)
    op_run = OpRun(ready, run_op, chosen_adapter(framework), dictionary=_takes_a_dict(run_op, ready))
    base = random_seed() if seed is None else seed_number(seed)
    seeds = seed_numbers(replay)
    plan = Plan(0 if seeds else iterations, base, seeds, fail_fast=fail_fast)
    plan.to_json()
    recorder = Recorder(client, name, base, drawn.drawn())
    try:
        found = op_run.run(plan, recorder, progress)
    finally:
        recorder.close()
    report = OpReport.from_json(found)
    trouble = [] if recorder.trouble is None else [recorder.trouble]
    results = FuzzResults(
        passed=report.passed,
        failed=report.failed,
        total=report.cases,
        status=report.status,
        failures=report.failures,
        seed=base,
        run=recorder.run,
        report=report,
        warnings=[*report.warnings, *trouble],
    )
    if raise_on_failure and not results.all_passed:
        raise ValidationError(str(results), report.failures[0] if report.failures else None)
    return results


def _line(op: str | CustomOp, drawn: Settings, framework: str | BaseAdapter | None) -> str:
    """Return the line that runs a case again, `{seed}` standing for its seed."""
    given = [
        f"value_distribution={word[7:]}" if word.startswith("values=") else word for word in drawn.written()
    ]
    if framework is not None:
        given.append(f"framework={getattr(framework, 'name', framework)!r}")
    subject = f'"{op}"' if isinstance(op, str) else op.name
    words = ", ".join([subject, "run_op", "replay={seed}", *given])
    return f"client.fuzz_op_client_side({words})"


def _takes_a_dict(function: Callable[..., Any], ready: _native.ReadyOp) -> bool:
    """Whether the only argument of a function is called like no input: then it gets all of them in a dict.

    Parameters of the op do not count: they come by name.
    """
    takes = accepted(function)
    parameters = json.loads(ready.describe())["parameters"]
    required = [name for name in takes["required"] if name not in parameters]
    return len(required) == 1 and not takes["any_positional"] and required[0] not in ready.inputs()
