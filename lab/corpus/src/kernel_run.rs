//! A run over one kernel of the corpus: generated cases, judged, and counted.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use gpuemu_engine::case::materialise;
use gpuemu_engine::minimise::{Budget, MinimiseStrategy, Minimised, minimise};
use gpuemu_engine::oracle::naive::{self, NaiveInputs};
use gpuemu_engine::oracle::strength::{Strength, Weakness};
use gpuemu_engine::oracle::{Subject, judge};
use gpuemu_engine::runner::{RunnerDescription, RunnerKind};
use gpuemu_engine::schema::Parameters;
use gpuemu_engine::verdict::{BugClass, Outcome, Verdict};
use gpuemu_model::settings::FuzzConfig;
use gpuemu_model::shard::Shard;
use gpuemu_run::case_loop::{Event, Judged, Plan, Sink, Stop, run_cases};
use gpuemu_run::configured_op::ConfiguredOp;
use gpuemu_run::result::{Context, complete};
use gpuemu_tensor::DType;
use rayon::prelude::*;
use serde::Serialize;

use crate::published::{Entry, Role, RunnerChoice};
use crate::visibility::{Visibility, visibility};

/// Parts that the cores of a machine share.
const SHARDS: u32 = 16;

/// Counts of cases by what they could show and what was found.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct CaseCounts {
    pub cases: usize,
    /// Cases about which nothing could be said.
    pub undetermined: usize,
    pub detected: usize,
    /// Cases in which the wrong formula differs at all.
    pub triggered: usize,
    /// Of those, the ones that failed.
    pub triggered_detected: usize,
    /// Cases in which it differs by more than an ulp.
    pub beyond_ulp: usize,
    /// Of those, the ones that failed.
    pub beyond_ulp_detected: usize,
    /// Cases in which every sound check must see it.
    pub observable: usize,
    /// Of those, the ones that failed.
    pub observable_detected: usize,
}

impl CaseCounts {
    /// Counts of two sets of cases together.
    pub fn join(self, other: Self) -> Self {
        Self {
            cases: self.cases + other.cases,
            undetermined: self.undetermined + other.undetermined,
            detected: self.detected + other.detected,
            triggered: self.triggered + other.triggered,
            triggered_detected: self.triggered_detected + other.triggered_detected,
            beyond_ulp: self.beyond_ulp + other.beyond_ulp,
            beyond_ulp_detected: self.beyond_ulp_detected + other.beyond_ulp_detected,
            observable: self.observable + other.observable,
            observable_detected: self.observable_detected + other.observable_detected,
        }
    }

    fn of(verdict: &Verdict, visibility: Visibility) -> Self {
        let failed = usize::from(verdict.failed());
        let reached = |level: Visibility| usize::from(visibility >= level);
        Self {
            cases: 1,
            undetermined: usize::from(verdict.outcome == Outcome::Undetermined),
            detected: failed,
            triggered: reached(Visibility::Triggered),
            triggered_detected: reached(Visibility::Triggered) * failed,
            beyond_ulp: reached(Visibility::BeyondUlp),
            beyond_ulp_detected: reached(Visibility::BeyondUlp) * failed,
            observable: reached(Visibility::Observable),
            observable_detected: reached(Visibility::Observable) * failed,
        }
    }
}

/// The usual check on one kernel, as run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct NaiveRow {
    pub dtype: DType,
    /// Whether it accepts the kernel on uniform inputs.
    pub accepts_uniform: bool,
    /// Whether it accepts the kernel on normal inputs.
    pub accepts_normal: bool,
}

/// What a run found out about a kernel.
#[derive(Debug, Clone)]
pub struct Row {
    pub entry: Entry,
    pub runner: RunnerDescription,
    pub counts: CaseCounts,
    pub naive: Vec<NaiveRow>,
    /// The first failing case, by index.
    pub first: Option<(u64, Verdict)>,
    pub smallest: Option<Minimised>,
    /// The bug class that most failing cases look like.
    pub suspected: Option<BugClass>,
    /// Dtypes whose passes prove little, and why.
    pub weak: Vec<Weakness>,
}

impl Row {
    /// Whether our verdict on the kernel is that it is wrong.
    pub fn flagged(&self) -> bool {
        self.counts.detected > 0
    }

    /// Whether our verdict is right.
    pub fn verdict_is_right(&self) -> bool {
        self.flagged() == (self.entry.role() == Role::Bug)
    }

    /// Whether the usual check rejects the kernel in at least one setting.
    pub fn allclose_rejects(&self) -> bool {
        self.naive.iter().any(|row| !row.accepts_uniform || !row.accepts_normal)
    }
}

#[derive(Default)]
struct Tally {
    counts: CaseCounts,
    first: Option<(u64, Verdict)>,
    classes: BTreeMap<BugClass, usize>,
    strength: Strength,
}

impl Tally {
    fn join(mut self, other: Self) -> Self {
        self.counts = self.counts.join(other.counts);
        self.first = match (self.first, other.first) {
            (Some(left), Some(right)) => Some(if left.0 <= right.0 { left } else { right }),
            (left, right) => left.or(right),
        };
        for (class, count) in other.classes {
            *self.classes.entry(class).or_default() += count;
        }
        self.strength = self.strength.join(other.strength);
        self
    }
}

/// Judges the case that a seed stands for, for a kernel of the corpus.
pub fn replay(entry: &Entry, choice: RunnerChoice, subject: &Subject, seed: u64) -> Result<Verdict, String> {
    let descriptor = subject.describe(&entry.sampler(choice), seed);
    let case = materialise(subject.schema(), &descriptor).map_err(|error| error.to_string())?;
    let mut runner = entry.runner(choice)?;
    let mut verdict = judge(subject, &case, runner.as_mut());
    let (settings, line) = (FuzzConfig::default(), replay_line(entry, runner.description()));
    complete(subject, &case, &mut verdict, context(subject, &settings, &line));
    verdict.time = 0;
    Ok(verdict)
}

/// The command that judges a case again, `{seed}` standing for its seed.
fn replay_line(entry: &Entry, runner: &RunnerDescription) -> String {
    // Seeds stand for other cases where other things can be run.
    let stands_in = runner.kind != RunnerKind::PtxMachine && entry.is_compiled();
    let runner = if stands_in { " --runner native" } else { "" };
    format!("gpuemu corpus --kernel {}{runner} --replay {{seed}}", entry.name)
}

fn context<'a>(subject: &'a Subject, settings: &'a FuzzConfig, replay: &'a str) -> Context<'a> {
    Context { replay: Some(replay), ..Context::new(&subject.schema().name, None, settings, 1.0) }
}

/// Runs `cases` cases. `progress` is called with the number of cases done since the last call.
pub fn run(
    entry: &Entry,
    choice: RunnerChoice,
    subject: &Subject,
    base_seed: u64,
    cases: u64,
    progress: &(dyn Fn(u64) + Sync),
) -> Result<Row, String> {
    let op = ConfiguredOp::of_subject(subject.clone(), entry.sampler(choice));
    let settings = FuzzConfig::default();
    let line = replay_line(entry, entry.runner(choice)?.description());
    let context = context(subject, &settings, &line);
    let shards = SHARDS.min(u32::try_from(cases).unwrap_or(SHARDS)).max(1);
    let tally = (1..=shards)
        .into_par_iter()
        .map(|index| {
            let shard = Shard::new(index, shards).map_err(|error| error.to_string())?;
            let mut runner = entry.runner(choice)?;
            let plan = Plan { shard: Some(shard), ..Plan::of(base_seed, cases) };
            let mut counter = Counter { entry, progress, tally: Tally::default() };
            let report = run_cases(&op, runner.as_mut(), &plan, context, &mut counter);
            match counter.tally.counts.cases as u64 == plan.total() {
                true => Ok(counter.tally),
                // Never a pass: nothing is known of a case that cannot be built.
                false => Err(report.message.unwrap_or_default()),
            }
        })
        .try_reduce(Tally::default, |left, right| Ok::<_, String>(left.join(right)))?;
    let mut runner = entry.runner(choice)?;
    let smallest = tally.first.as_ref().and_then(|(_, verdict)| {
        let case = verdict.failing_case.as_deref().unwrap_or(&verdict.case);
        let budget = Budget { runs: 400, ..Budget::default() };
        minimise(subject, case, runner.as_mut(), MinimiseStrategy::Combined, budget)
    });
    Ok(Row {
        entry: *entry,
        runner: runner.description().clone(),
        counts: tally.counts,
        naive: usual_check(entry, choice, subject)?,
        weak: tally.strength.weaknesses(),
        suspected: tally.classes.iter().max_by_key(|(_, count)| **count).map(|(class, _)| *class),
        first: tally.first,
        smallest,
    })
}

/// Counts the cases of one shard.
struct Counter<'a> {
    entry: &'a Entry,
    progress: &'a (dyn Fn(u64) + Sync),
    tally: Tally,
}

impl Sink for Counter<'_> {
    fn take(&mut self, event: &Event<'_>) -> ControlFlow<Stop> {
        if let Event::CaseJudged(judged) = event {
            let Judged { op, case, verdict, .. } = judged;
            let level = match (self.entry.role(), op.subject.expect(case)) {
                // The stand-in has the formula, whatever ran.
                (Role::Bug, Ok(expectations)) => visibility(&op.subject, &self.entry.stand_in(), case, &expectations),
                _ => Visibility::Untouched,
            };
            let tally = &mut self.tally;
            tally.counts = tally.counts.join(CaseCounts::of(verdict, level));
            tally.strength.add(verdict);
            if let Some(finding) = verdict.finding() {
                *tally.classes.entry(finding.bug_class).or_default() += 1;
            }
            if verdict.failed() && tally.first.is_none() {
                let mut first = (*verdict).clone();
                // A run says the same whenever it is made.
                first.time = 0;
                tally.first = Some((judged.index, first));
            }
            (self.progress)(1);
        }
        ControlFlow::Continue(())
    }
}

/// The parameters of a call that names none.
pub(crate) fn default_parameters(subject: &Subject) -> Parameters {
    let parameters = &subject.schema().parameters;
    Parameters(parameters.iter().map(|spec| (spec.name.clone(), spec.default)).collect())
}

/// `allclose` on one shape, five seeds, as people run it.
fn usual_check(entry: &Entry, choice: RunnerChoice, subject: &Subject) -> Result<Vec<NaiveRow>, String> {
    let sizes = entry.naive_sizes();
    let parameters = default_parameters(subject);
    let accepts = |dtype, inputs| -> Result<bool, String> {
        let mut runner = entry.runner(choice)?;
        Ok(naive::accepts(subject, runner.as_mut(), &sizes, &parameters, dtype, inputs))
    };
    [DType::F32, DType::F16, DType::BF16]
        .into_par_iter()
        .map(|dtype| {
            Ok(NaiveRow {
                dtype,
                accepts_uniform: accepts(dtype, NaiveInputs::Uniform)?,
                accepts_normal: accepts(dtype, NaiveInputs::Normal)?,
            })
        })
        .collect()
}
