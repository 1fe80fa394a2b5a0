//! A campaign over one kernel of the corpus: generated cases, judged, and counted.

use std::collections::BTreeMap;

use gpuemu_engine::Sampler;
use gpuemu_engine::case::materialise;
use gpuemu_engine::minimise::{Budget, MinimiseStrategy, Minimised, minimise};
use gpuemu_engine::oracle::naive::{self, NaiveInputs};
use gpuemu_engine::oracle::strength::{Strength, Weakness};
use gpuemu_engine::oracle::{Subject, judge};
use gpuemu_engine::runner::{Runner, RunnerDescription};
use gpuemu_engine::schema::Parameters;
use gpuemu_engine::verdict::{BugClass, Outcome, Verdict};
use gpuemu_tensor::DType;
use gpuemu_tensor::rng::case_seed;
use rayon::prelude::*;
use serde::Serialize;

use crate::published::{Entry, Role, RunnerChoice};
use crate::visibility::{Visibility, visibility};

/// Counts of cases by what they could show and what was found.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct CaseCounts {
    /// Cases judged.
    pub cases: usize,
    /// Cases about which nothing could be said.
    pub undetermined: usize,
    /// Cases that failed.
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
    /// Dtype.
    pub dtype: DType,
    /// Whether it accepts the kernel on uniform inputs.
    pub accepts_uniform: bool,
    /// Whether it accepts the kernel on normal inputs.
    pub accepts_normal: bool,
}

/// What a campaign found out about a kernel.
#[derive(Debug, Clone)]
pub struct Row {
    /// The kernel.
    pub entry: Entry,
    /// What ran it.
    pub runner: RunnerDescription,
    /// Its cases.
    pub counts: CaseCounts,
    /// The usual check.
    pub naive: Vec<NaiveRow>,
    /// The first failing case, by index.
    pub first: Option<(u64, Verdict)>,
    /// Its smallest form.
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
    Ok(judge(subject, &case, entry.runner(choice)?.as_mut()))
}

/// Runs a campaign of `cases` cases. `progress` is called with the number of cases done since the last call.
pub fn run(
    entry: &Entry,
    choice: RunnerChoice,
    subject: &Subject,
    base_seed: u64,
    cases: u64,
    progress: &(dyn Fn(u64) + Sync),
) -> Result<Row, String> {
    let sampler = entry.sampler(choice);
    let tally = (0..cases)
        .into_par_iter()
        .map(|index| {
            let tally = one(entry, entry.runner(choice)?.as_mut(), subject, &sampler, base_seed, index);
            progress(1);
            Ok(tally)
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

fn one(
    entry: &Entry,
    runner: &mut dyn Runner,
    subject: &Subject,
    sampler: &Sampler,
    base_seed: u64,
    index: u64,
) -> Tally {
    let descriptor = subject.describe(sampler, case_seed(base_seed, index));
    let mut tally = Tally::default();
    let Ok(case) = materialise(subject.schema(), &descriptor) else {
        // Never a pass: a case that cannot be built is one about which nothing is known.
        tally.counts = CaseCounts { cases: 1, undetermined: 1, ..CaseCounts::default() };
        return tally;
    };
    let verdict = judge(subject, &case, runner);
    let level = match (entry.role(), subject.expect(&case)) {
        // The stand-in has the formula, whatever ran.
        (Role::Bug, Ok(expectations)) => visibility(subject, &entry.stand_in(), &case, &expectations),
        _ => Visibility::Untouched,
    };
    tally.counts = CaseCounts::of(&verdict, level);
    tally.strength.add(&verdict);
    if let Some(finding) = verdict.finding() {
        tally.classes.insert(finding.bug_class, 1);
    }
    if verdict.failed() {
        tally.first = Some((index, verdict));
    }
    tally
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
