"""`Client.fuzz_op_client_side`: many cases for a function of this process, every result kept."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from gpuemu import _native
from gpuemu._campaign import Campaign, Plan, Progress, Settings, chosen_adapter, random_seed
from gpuemu._recording import Recorder
from gpuemu._signature import accepted
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
    known = [field.name for field in dataclasses.fields(Settings)]
    for name in settings:
        if name not in known:
            raise TypeError(f"fuzz_op_client_side has no '{name}'; it has {', '.join(known)}")
    drawn = Settings(**settings)
    name = op if isinstance(op, str) else op.name
    line = f'client.fuzz_op_client_side("{name}", run_op, replay={{seed}})'
    options = drawn.options(client.project, line)
    ready = _native.ReadyOp.open(op, options) if isinstance(op, str) else op.open(options)
    campaign = Campaign(ready, run_op, chosen_adapter(framework), dictionary=_takes_a_dict(run_op, ready))
    base = random_seed() if seed is None else seed
    seeds = [] if replay is None else [replay] if isinstance(replay, int) else list(replay)
    plan = Plan(0 if seeds else iterations, base, seeds, fail_fast=fail_fast)
    recorder = Recorder(client, name, base, drawn.drawn())
    try:
        found = campaign.run(plan, recorder, progress)
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


def _takes_a_dict(function: Callable[..., Any], ready: _native.ReadyOp) -> bool:
    """Whether the only argument of a function is called like no input: then it gets all of them in a dict."""
    takes = accepted(function)
    required = takes["required"]
    return len(required) == 1 and not takes["any_positional"] and required[0] not in ready.inputs()
