"""`gpuemu.check`: one line in a test that a wrong kernel does not pass."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from gpuemu import _native
from gpuemu._arrays.numbers import seed_number, seed_numbers
from gpuemu._client.project import project_reference
from gpuemu._client.recording import Recorder
from gpuemu._runs.defaults import current_defaults
from gpuemu._runs.op_run import OpRun, Plan, Progress, chosen_adapter, random_seed
from gpuemu._runs.settings import Settings, Size, Tolerance, check_op, opened
from gpuemu._runs.signature import function_name
from gpuemu.custom_op import CustomOp
from gpuemu.errors import ClientError
from gpuemu.frameworks.base import BaseAdapter
from gpuemu.precision import Precision
from gpuemu.reports import CheckReport, smallest_case
from gpuemu.results import OpReport

if TYPE_CHECKING:
    from gpuemu.client import Client

_MOST_REPLAYED = 20
_MOST_LOOKED_AT = 2000
_UNTIL_TIME_IS_UP = 1 << 40


def check(
    op: str | CustomOp,
    fn: Callable[..., Any],
    *,
    cases: int | None = None,
    seed: int | None = None,
    replay: int | Sequence[int] | None = None,
    dtypes: Sequence[str] | None = None,
    layouts: Sequence[str] | None = None,
    values: str | None = None,
    sizes: Mapping[str, Size] | None = None,
    budget: int | None = None,
    kwargs: Mapping[str, Any] | None = None,
    precision: Precision | Mapping[str, Any] | str | None = None,
    tolerance: Tolerance | None = None,
    invariants: Sequence[str] = (),
    framework: str | BaseAdapter | None = None,
    out: bool | str | None = None,
    allow: Sequence[str] = (),
    launches: Any = None,
    check_backward: bool = False,
    seconds: float | None = None,
    fail_fast: bool = False,
    repeats: int = 1000,
    minimize: bool = True,
    store: bool | None = None,
    project: str | os.PathLike[str] | None = None,
    progress: Progress | None = None,
    client: Client | None = None,
    raises: bool = True,
) -> CheckReport:
    """Try a function as a kernel of an op, and raise `AssertionError` if it is wrong.

    `op` is a built-in op (`gpuemu ops` lists them), an op of the project's `gpuemu.toml`, or one from
    `gpuemu.op`. `fn` is called with arrays of `framework` (NumPy unless something else is named or in use) by
    the names of the op's inputs if its parameters have them, else in their order, and with the op's
    parameters that it takes. If it takes `out=`, it is given poisoned memory between guard bands to write
    into.

    `cases` are drawn from `seed`, at random if None, over dtypes, layouts, shapes and values; `sizes` fixes
    or narrows dims (`{"K": 2048, "M": (1, 64)}`), `budget` says how large a case may be, `kwargs` fixes
    parameters. A built-in op is judged by a rigorous bound for the declared `precision`; `tolerance` replaces
    it. `replay` runs the cases of these seeds and no others. `check_backward` tries the gradients too.

    Every case runs several times: at other addresses, over other poison, with new data at the same addresses,
    and the first one again after all others (`repeats`). `allow=("aliasing", "output_overwritten")` accepts
    functions that return views of their inputs, or the same memory in every call. `launches` is the function
    or kernel that every call has to run: a result without it fails, because something else computed it.
    """
    __tracebackhide__ = True
    check_op(op)
    settings = Settings(
        dtypes=dtypes,
        layouts=layouts,
        values=values,
        sizes=sizes or {},
        budget=budget,
        parameters=kwargs or {},
        precision=precision,
        tolerance=tolerance if tolerance is not None or isinstance(op, str) else op.tolerance,
        invariants=invariants,
    )
    run = Check(op, fn, settings, chosen_adapter(framework), out, allow, launches, project, client, store)
    if check_backward and current_defaults().reproduce is None:
        run.reproduce = run.reproduce.removesuffix(")") + ", check_backward=True)"
    plan = _plan(cases, seed, replay, seconds, fail_fast, repeats)
    report = run.perform(plan, minimize, progress)
    if check_backward:
        from gpuemu._runs.gradients import check_gradients

        again = dataclasses.replace(plan, replayed=[] if plan.cases else plan.replayed)
        report = check_gradients(run, report, again, minimize, progress)
    if raises:
        report.raise_for_status()
    return report


def _plan(
    cases: int | None,
    seed: int | None,
    replay: int | Sequence[int] | None,
    seconds: float | None,
    fail_fast: bool,
    repeats: int,
) -> Plan:
    usual = current_defaults()
    seeds = seed_numbers(replay if replay is not None else usual.replay)
    if replay is not None and not seeds:
        raise ValueError("replay is an empty list: no case would be run")
    chosen = seed if seed is not None else usual.seed
    count = cases if cases is not None else usual.cases
    if seeds:
        count = 0
    elif seconds is not None and cases is None:
        count = _UNTIL_TIME_IS_UP
    base = random_seed() if chosen is None else seed_number(chosen)
    plan = Plan(count, base, seeds, seconds, fail_fast, repeats if not seeds else 0)
    # What makes no sense is refused here, before a daemon is started.
    plan.to_json()
    return plan


class Check:
    """An op and a function, with everything that a run of them needs."""

    def __init__(
        self,
        op: str | CustomOp,
        function: Callable[..., Any],
        settings: Settings,
        adapter: BaseAdapter,
        out: bool | str | None,
        allow: Sequence[str],
        launches: Any,
        project: str | os.PathLike[str] | None,
        client: Client | None,
        store: bool | None,
    ) -> None:
        """Put them together; nothing is run, and no daemon is started, before `perform`."""
        usual = current_defaults()
        self.op, self.function, self.settings, self.adapter = op, function, settings, adapter
        self.out, self.allow, self.launches = out, allow, launches
        self.name = op if isinstance(op, str) else op.name
        self.usual = usual
        project = usual.project if project is None else project
        self.project = project_reference(project)
        self.client = client
        if client is None and (usual.store if store is None else store):
            from gpuemu.client import Client

            self.client = Client(project=project)
        self.reproduce = usual.reproduce or self._line(project)
        self.owner = usual.owner or function_name(function)

    def options(self) -> str:
        """Return the settings as the engine reads them."""
        return self.settings.options(self.project, self.reproduce)

    def ready(self) -> _native.ReadyOp:
        """Return the op, ready to be judged."""
        return opened(self.op, self.options())

    def _line(self, project: str | os.PathLike[str] | None) -> str:
        """Return the line that runs a case again: a seed stands for a case among those that can be drawn."""
        subject = f'"{self.op}"' if isinstance(self.op, str) else self.op.name
        words = [subject, _short(self.function), "replay={seed}", *self.settings.written()]
        if self.adapter.name != "numpy":
            words.append(f"framework={self.adapter.name!r}")
        given = {
            "out": self.out,
            "allow": self.allow or None,
            "project": None if project is None else str(project),
        }
        words += [f"{name}={value!r}" for name, value in given.items() if value is not None]
        if self.launches is not None:
            kernel = repr(self.launches) if isinstance(self.launches, str) else _short(self.launches)
            words.append(f"launches={kernel}")
        return f"gpuemu.check({', '.join(words)})"

    def perform(
        self,
        plan: Plan,
        minimize: bool,
        progress: Progress | None,
        name: str | None = None,
        ready: _native.ReadyOp | None = None,
        function: Callable[..., Any] | None = None,
        allow: Sequence[str] | None = None,
    ) -> CheckReport:
        """Run the cases of a plan."""
        name = name or self.name
        runner = f"callable {self.owner}"
        out, allowed = (self.out, self.allow) if allow is None else (False, allow)
        # The backward need not run what the forward has to.
        launches = self.launches if function is None else None
        op_run = OpRun(
            ready or self.ready(),
            function or self.function,
            self.adapter,
            out,
            allowed,
            runner,
            launches=launches,
        )
        warnings: list[str] = []
        if not plan.replayed and self.usual.replay_failures and self.client is not None:
            plan.replayed = self._failed_before(name, runner, warnings)
        recorder = None
        if self.client is not None:
            recorder = Recorder(self.client, name, plan.seed, self.settings.drawn())
        try:
            found = op_run.run(plan, recorder, _shown(progress, plan))
        finally:
            if recorder is not None:
                recorder.close()
        if recorder is not None and recorder.trouble is not None:
            warnings.append(recorder.trouble)
        report = OpReport.from_json(found)
        smallest = None
        line = self.reproduce
        if report.failures:
            first = report.failures[0]
            line = self.reproduce.replace("{seed}", str(first.seed))
            if first.failures[0].bug_class == "first_calls_only":
                # Alone, the case passes: what leads to it is the whole run.
                whole = {"replay=": f"seed={plan.seed}, cases={plan.cases}"}
                whole["--gpuemu-replay="] = f"--gpuemu-seed={plan.seed} --gpuemu-cases={plan.cases}"
                option = "--gpuemu-replay=" if "--gpuemu-replay=" in self.reproduce else "replay="
                line = self.reproduce.replace(option + "{seed}", whole[option])
            if minimize and first.failures[0].bug_class != "first_calls_only" and report.errors == 0:
                smallest = smallest_case(op_run.minimise(first.seed))
                if smallest is None:
                    warnings.append(
                        "the case passes when it is run by itself: the failure depends on the calls before "
                        f"it; seed={plan.seed} runs all of them again"
                    )
        return CheckReport(
            name, report.status, report, plan.seed, line, smallest, [*report.warnings, *warnings]
        )

    def _failed_before(self, name: str, runner: str, warnings: list[str]) -> list[int]:
        assert self.client is not None
        try:
            failures = self.client.list_failures(name, limit=_MOST_LOOKED_AT)
        except ClientError as error:
            warnings.append(f"failures of earlier runs were not tried again: {error.message}")
            return []
        seeds = [failure.seed for failure in failures if failure.runner == runner and not failure.minimized]
        return list(dict.fromkeys(seeds))[:_MOST_REPLAYED]


def _shown(progress: Progress | None, plan: Plan) -> Progress | None:
    if progress is None or plan.cases != _UNTIL_TIME_IS_UP:
        return progress
    # As many as there is time for: nobody planned a number.
    return lambda done, _, failed: progress(done, done, failed)


def _short(function: Callable[..., Any]) -> str:
    name = function_name(function).rpartition(".")[2]
    return name if name.isidentifier() else "fn"
