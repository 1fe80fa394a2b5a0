//! The loop: every front tries the cases of an op here, with a runner and sinks of its own.
//!
//! Cases are drawn, run, judged and added up; what happens is told to the sinks as events. The loop knows nothing of
//! stores, sockets, terminals or Python.

mod draw;
mod event;
mod plan;

use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use gpuemu_engine::oracle::compare::Forgiven;
use gpuemu_engine::oracle::state::repeat;
use gpuemu_engine::oracle::{judge, judge_expected};
use gpuemu_engine::runner::Runner;
use gpuemu_engine::{Case, Verdict};
use gpuemu_model::finding::{BugClass, Outcome};
use gpuemu_model::report::OpReport;
use gpuemu_process::fault;
use gpuemu_tensor::FloatEnvironment;

use crate::configured_op::ConfiguredOp;
use crate::result::{Context, complete};
use crate::tally::{MOST_COMPARED, Tally, facts_of};
use draw::{Drawn, each_case};

pub use event::{Event, Judged, Sink, Stop};
pub use plan::{Limit, Plan, Repeats};

/// Tries the cases of an op; what they come to.
pub fn run_cases(
    op: &ConfiguredOp,
    runner: &mut dyn Runner,
    plan: &Plan,
    context: Context<'_>,
    sink: &mut dyn Sink,
) -> OpReport {
    let started = Instant::now();
    let _standard = FloatEnvironment::enter_standard();
    let mut warnings = op.warnings.clone();
    let differences = FloatEnvironment::outside().differences();
    if !differences.is_empty() {
        warnings.push(format!(
            "this thread's floating-point environment was changed before the run ({}): the op runs in it, and is judged \
             in the standard one",
            differences.join(", ")
        ));
    }
    let tally = Tally::new(&op.name, &warnings);
    let mut tally = if plan.shard.is_some() { tally.keep_part() } else { tally };
    tally.forgives = op.subject.forgiven != Forgiven::default();
    let mut cases = Cases { op, runner, plan, context, sink, tally, passed: None, explained: false, stopped: false };
    // Why it ended early is in the tally.
    let _ = each_case(&op.subject, &op.sampler, plan, |drawn| cases.step(drawn));
    if !cases.stopped {
        let repeated = cases.repeat();
        cases.settle(repeated);
    }
    let kept = cases.sink.take(&Event::CasesEnded);
    cases.settle(kept);
    fault!("op.conclude");
    let mut report = cases.tally.conclude(context.warn_threshold);
    report.planned = plan.planned(report.cases);
    report.seconds = started.elapsed().as_secs_f64();
    report
}

struct Cases<'a> {
    op: &'a ConfiguredOp,
    runner: &'a mut dyn Runner,
    plan: &'a Plan,
    context: Context<'a>,
    sink: &'a mut dyn Sink,
    tally: Tally,
    /// The first case that passed, to come back to.
    passed: Option<(u64, Case, Verdict)>,
    /// Whether the first failure was looked at for what came before it.
    explained: bool,
    /// Whether the op was ended before its time.
    stopped: bool,
}

impl Cases<'_> {
    /// Ends the op where there is a reason to.
    fn settle(&mut self, flow: ControlFlow<Stop>) {
        let ControlFlow::Break(stop) = flow else { return };
        self.stopped = true;
        match stop {
            Stop::Cancelled => self.tally.unfinished("cancelled", self.plan.total()),
            Stop::Failed(message) => self.tally.stop(message),
        }
    }

    /// Runs one case, unless there is no time or wish for another.
    fn step(&mut self, drawn: Drawn) -> ControlFlow<()> {
        let planned = self.plan.total();
        let wanted = self.sink.take(&Event::CaseDue { so_far: &self.tally.report, planned });
        let is_up = |limit: &Limit| Instant::now() >= limit.deadline;
        if wanted.is_continue()
            && let Some(limit) = self.plan.limit.filter(is_up)
        {
            if !limit.is_goal {
                self.tally.unfinished("time ran out", planned);
                self.stopped = true;
            }
            return ControlFlow::Break(());
        }
        let ended = match wanted {
            ControlFlow::Break(stop) => ControlFlow::Break(stop),
            ControlFlow::Continue(()) => match self.case(drawn) {
                ControlFlow::Continue(failed) if !failed || !self.plan.fail_fast => return ControlFlow::Continue(()),
                ended => ended.map_continue(|_| ()),
            },
        };
        self.settle(ended);
        ControlFlow::Break(())
    }

    /// Judges one case; whether it failed.
    fn case(&mut self, drawn: Drawn) -> ControlFlow<Stop, bool> {
        let Drawn { index, seed, case, expected, left_out } = drawn;
        let case = match case {
            Ok(case) => case,
            Err(error) => return failed(format!("case {index} (seed {seed}) cannot be made: {error}")),
        };
        let subject = &self.op.subject;
        fault!("case.judge");
        let expected = expected.unwrap_or_else(|| subject.expect(&case));
        let mut verdict = judge_expected(subject, &case, expected, self.runner);
        fault!("case.judged");
        self.first_calls_only(&mut verdict);
        self.broken()?;
        let mut facts = facts_of(index, &verdict);
        facts.left_out = left_out;
        if let Some(bound) = self.op.bound.as_ref().filter(|_| verdict.failed())
            && self.tally.report.failed < MOST_COMPARED
        {
            fault!("case.judge_by_bound");
            facts.within_bound = Some(judge(bound, &case, self.runner).outcome == Outcome::Passed);
            self.broken()?;
        }
        fault!("case.result");
        complete(subject, &case, &mut verdict, self.context);
        fault!("case.tally");
        self.tally.add(facts, &verdict);
        self.judged(index, &case, &verdict, false)?;
        if verdict.outcome == Outcome::Error {
            return failed(verdict.result.message.unwrap_or_default());
        }
        let has_failed = verdict.failed();
        let comes_back = self.passed.is_none() && self.runner.description().remembers;
        if comes_back && verdict.outcome == Outcome::Passed && verdict.elements.compared > 0 {
            self.passed = Some((index, case, verdict));
        }
        ControlFlow::Continue(has_failed)
    }

    fn judged(&mut self, index: u64, case: &Case, verdict: &Verdict, again: bool) -> ControlFlow<Stop> {
        self.sink.take(&Event::CaseJudged(Judged { op: self.op, index, case, verdict, again }))
    }

    /// A failure of what runs the kernel is no verdict on it.
    fn broken(&self) -> ControlFlow<Stop> {
        self.runner.broken().map_or(ControlFlow::Continue(()), failed)
    }

    /// Where a case that passed before fails as well after the first failure, calls are what has made it fail.
    fn first_calls_only(&mut self, verdict: &mut Verdict) {
        let Some((_, earlier, _)) = self.passed.as_ref().filter(|_| verdict.failed() && !self.explained) else {
            return;
        };
        self.explained = true;
        let (_, again) = repeat(&self.op.subject, earlier, self.runner, 1, Duration::ZERO);
        if let (Some(_), Some(finding)) = (again, verdict.failures.first_mut()) {
            finding.bug_class = BugClass::FirstCallsOnly;
            finding.explanation.push_str(&format!(
                "; the case with seed {}, which passed before, fails now too: right in the first calls only",
                earlier.descriptor.seed
            ));
        }
    }

    /// The first case that passed again, many times.
    fn repeat(&mut self) -> ControlFlow<Stop> {
        let Repeats { calls, time } = self.plan.repeats;
        let Some((index, case, mut verdict)) = self.passed.take().filter(|_| self.tally.report.failed == 0) else {
            return ControlFlow::Continue(());
        };
        let (_, finding) = repeat(&self.op.subject, &case, self.runner, calls, time);
        self.broken()?;
        let Some(finding) = finding else { return ControlFlow::Continue(()) };
        verdict.outcome = Outcome::Failed;
        verdict.failures = vec![finding];
        complete(&self.op.subject, &case, &mut verdict, self.context);
        self.tally.fail(index, &verdict);
        self.judged(index, &case, &verdict, true)
    }
}

fn failed<C>(message: String) -> ControlFlow<Stop, C> {
    ControlFlow::Break(Stop::Failed(message))
}
