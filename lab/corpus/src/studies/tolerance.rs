//! P2: what a fixed, a calibrated and the rigorous tolerance find on the same outputs, and how often they cry wolf.
//!
//! Rules compare outputs and nothing else. The verdict, which also looks at memory, runs twice and looks for more
//! evidence, is counted beside them.

use gpuemu_engine::Sampler;
use gpuemu_engine::case::materialise;
use gpuemu_engine::oracle::calibrate::calibrate;
use gpuemu_engine::oracle::compare::Rule;
use gpuemu_engine::oracle::judge::run_case;
use gpuemu_engine::oracle::{Subject, Tolerance, judge_expected};
use gpuemu_engine::runner::{Runner, RunnerKind};
use gpuemu_engine::verdict::Outcome;
use gpuemu_model::Strategy;
use gpuemu_tensor::rng::case_seed;
use gpuemu_tensor::{DType, Layout};
use rayon::prelude::*;
use serde::Serialize;

use super::headroom::{Gap, case_share};
use super::{Progress, seed_of, subject_of};
use crate::detection::DTYPES;
use crate::published::{Entry, KERNELS, Role, RunnerChoice};
use crate::visibility::{Visibility, visibility};

/// The rules that are compared.
pub const RULES: [&str; 4] = ["fixed", "calibrated", "bound", "verdict"];

/// Index of the fixed tolerances.
pub const FIXED: usize = 0;
/// Index of the calibrated ones.
pub const CALIBRATED: usize = 1;
/// Index of the rigorous rule.
pub const BOUND: usize = 2;
/// Index of the whole verdict.
pub const VERDICT: usize = 3;

/// Cases that a calibration takes for each kernel and dtype.
pub const CALIBRATION_CASES: usize = 200;

/// Wrong kernels, and the published inputs, have this share of the cases.
pub const SHARE: u64 = 5;

/// Seeds of surprises that are kept for each kernel.
const MOST_SEEDS: usize = 8;

/// Where the values of cases come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CaseInputs {
    /// As published: uniform in [−10, 10), contiguous, float32 and float16, and float32 alone for a matmul.
    Published,
    /// As gpuemu draws them: every kind of value, layout and dtype.
    Ours,
}

impl CaseInputs {
    pub const ALL: [CaseInputs; 2] = [CaseInputs::Published, CaseInputs::Ours];

    /// The name used in reports.
    pub const fn name(self) -> &'static str {
        match self {
            CaseInputs::Published => "published",
            CaseInputs::Ours => "ours",
        }
    }

    pub const fn words(self) -> &'static str {
        match self {
            CaseInputs::Published => "the published inputs",
            CaseInputs::Ours => "our inputs",
        }
    }

    fn sampler(self, entry: &Entry, choice: RunnerChoice) -> Sampler {
        let sampler = entry.sampler(choice);
        match self {
            CaseInputs::Ours => sampler,
            CaseInputs::Published => {
                let half = if entry.op() == "matmul" { None } else { Some(DType::F16) };
                let dtypes = [DType::F32].into_iter().chain(half).collect();
                Sampler { strategy: Strategy::Default, layouts: vec![Layout::Contiguous], dtypes, ..sampler }
            }
        }
    }

    /// The cases of a kernel where each correct one has `cases` of ours.
    fn cases(self, role: Role, cases: u64) -> u64 {
        let fifths = u32::from(role == Role::Bug) + u32::from(self == CaseInputs::Published);
        (cases / SHARE.pow(fifths)).max(1)
    }
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct RuleFound {
    /// Cases that it flags.
    pub detected: usize,
    /// Of those, the ones in which the bug changes anything.
    pub triggered: usize,
    /// Of those, the ones in which it does so by more than an ulp.
    pub beyond_ulp: usize,
    /// Of those, the ones in which every sound check must see it.
    pub observable: usize,
}

/// What all rules found in a set of cases.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Found {
    pub cases: usize,
    /// Cases about which nothing could be said.
    pub undetermined: usize,
    /// Cases in which the bug changes anything.
    pub triggered: usize,
    /// Cases in which it does so by more than an ulp.
    pub beyond_ulp: usize,
    /// Cases in which every sound check must see it.
    pub observable: usize,
    /// For each of [`RULES`] what it found.
    pub rules: [RuleFound; RULES.len()],
    /// Seeds of correct kernels that the bound or the verdict flags, and of observable bugs that one of them misses.
    #[serde(skip)]
    pub surprises: Vec<u64>,
    /// Errors over the bound, by the place of the dtype in [`DTYPES`].
    #[serde(skip)]
    pub gaps: [Gap; DTYPES.len()],
}

impl Found {
    /// Two sets of cases together.
    pub fn join(mut self, other: Self) -> Self {
        self.cases += other.cases;
        self.undetermined += other.undetermined;
        self.triggered += other.triggered;
        self.beyond_ulp += other.beyond_ulp;
        self.observable += other.observable;
        for (rule, added) in self.rules.iter_mut().zip(other.rules) {
            rule.detected += added.detected;
            rule.triggered += added.triggered;
            rule.beyond_ulp += added.beyond_ulp;
            rule.observable += added.observable;
        }
        let room = MOST_SEEDS.saturating_sub(self.surprises.len());
        self.surprises.extend(other.surprises.into_iter().take(room));
        for (gap, added) in self.gaps.iter_mut().zip(other.gaps) {
            *gap = gap.join(added);
        }
        self
    }
}

/// One kernel with one kind of inputs.
#[derive(Debug, Clone)]
pub struct Row {
    pub entry: Entry,
    pub inputs: CaseInputs,
    pub runner: RunnerKind,
    /// atol and rtol, by dtype, that its control was calibrated to.
    pub calibrated: Vec<(DType, f64)>,
    pub found: Found,
}

/// How many units of progress a study of so many cases reports, the mutants of the headroom left aside.
pub fn work(cases: u64) -> u64 {
    let of = |entry: &Entry| CaseInputs::ALL.map(|inputs| inputs.cases(entry.role(), cases)).iter().sum::<u64>();
    KERNELS.iter().map(of).sum()
}

/// All rows of a kind together.
pub fn total(rows: &[Row], inputs: CaseInputs, role: Role) -> Found {
    let of_kind = rows.iter().filter(|row| row.inputs == inputs && row.entry.role() == role);
    of_kind.fold(Found::default(), |found, row| found.join(row.found.clone()))
}

/// Runs the study: `cases` cases of ours for each correct kernel.
pub fn run(choice: RunnerChoice, base_seed: u64, cases: u64, progress: Progress<'_>) -> Result<Vec<Row>, String> {
    let mut rows = Vec::new();
    for inputs in CaseInputs::ALL {
        for entry in &KERNELS {
            rows.push(row(entry, inputs, choice, base_seed, inputs.cases(entry.role(), cases), progress)?);
        }
    }
    Ok(rows)
}

fn row(
    entry: &Entry,
    inputs: CaseInputs,
    choice: RunnerChoice,
    base_seed: u64,
    cases: u64,
    progress: Progress<'_>,
) -> Result<Row, String> {
    let subject = subject_of(entry, choice)?;
    let sampler = inputs.sampler(entry, choice);
    let calibrated = envelopes(entry, inputs, choice, base_seed)?;
    let base = seed_of(base_seed, inputs.name(), entry.number);
    let judged = JudgedKernel { entry, subject: &subject, sampler: &sampler, calibrated: &calibrated };
    let one = |index: u64| {
        let found = judged.case(entry.runner(choice)?.as_mut(), case_seed(base, index));
        progress(1);
        Ok::<_, String>(found)
    };
    let found = (0..cases)
        .into_par_iter()
        .map(one)
        .try_reduce(Found::default, |left, right| Ok::<_, String>(left.join(right)))?;
    let runner = entry.runner(choice)?.description().kind;
    Ok(Row { entry: *entry, inputs, runner, calibrated, found })
}

/// p95 × 1.5 of the correct kernel's errors, on cases that are not judged.
fn envelopes(
    entry: &Entry,
    inputs: CaseInputs,
    choice: RunnerChoice,
    base_seed: u64,
) -> Result<Vec<(DType, f64)>, String> {
    let control = entry.control().ok_or_else(|| format!("kernel '{}' has no control", entry.name))?;
    let (subject, sampler) = (subject_of(control, choice)?, inputs.sampler(control, choice));
    let seed = seed_of(base_seed, "calibration", control.number);
    let envelope = |dtype: &DType| {
        let mut runner = control.runner(choice)?;
        let calibration = calibrate(&subject, runner.as_mut(), &sampler, *dtype, seed, CALIBRATION_CASES);
        match calibration.map_err(|error| format!("{}: {error}", control.name))?.envelope {
            Tolerance::Calibrated { atol, .. } => Ok((*dtype, atol)),
            other => Err(format!("{}: calibrated to {}", control.name, other.describe())),
        }
    };
    sampler.dtypes.par_iter().map(envelope).collect()
}

struct JudgedKernel<'a> {
    entry: &'a Entry,
    subject: &'a Subject,
    sampler: &'a Sampler,
    calibrated: &'a [(DType, f64)],
}

impl JudgedKernel<'_> {
    fn case(&self, runner: &mut dyn Runner, seed: u64) -> Found {
        let subject = self.subject;
        let nothing = Found { cases: 1, undetermined: 1, ..Found::default() };
        let descriptor = subject.describe(self.sampler, seed);
        let Ok(case) = materialise(subject.schema(), &descriptor) else { return nothing };
        let Ok(expectations) = subject.expect(&case) else { return nothing };
        let level = match self.entry.role() {
            // The stand-in has the formula, whatever ran.
            Role::Bug => visibility(subject, &self.entry.stand_in(), &case, &expectations),
            Role::Control => Visibility::Untouched,
        };
        let mut flagged = [false; RULES.len()];
        let mut share = f64::INFINITY;
        match run_case(subject, &case, runner) {
            Err(_) => flagged = [true; RULES.len()],
            Ok(outputs) => {
                share = case_share(subject, &outputs, &expectations);
                for (buffer, expectation) in outputs.iter().zip(&expectations) {
                    let (bytes, dtype) = (buffer.contiguous_bytes(), buffer.dtype());
                    let rejects = |tolerance| Rule::new(dtype, tolerance).rejects(&bytes, expectation);
                    let envelope = self.calibrated.iter().find(|(known, _)| *known == dtype);
                    flagged[FIXED] |= rejects(Tolerance::fixed_default(dtype));
                    flagged[CALIBRATED] |=
                        envelope.is_some_and(|(_, pair)| rejects(Tolerance::Calibrated { atol: *pair, rtol: *pair }));
                    flagged[BOUND] |= subject.rule(dtype).rejects(&bytes, expectation);
                }
            }
        }
        let verdict = judge_expected(subject, &case, Ok(expectations), runner);
        flagged[VERDICT] = verdict.failed();
        let undetermined = verdict.outcome == Outcome::Undetermined || verdict.outcome == Outcome::Error;
        self.count(seed, descriptor.dtype, level, flagged, share, undetermined)
    }

    fn count(
        &self,
        seed: u64,
        dtype: DType,
        level: Visibility,
        flagged: [bool; RULES.len()],
        share: f64,
        undetermined: bool,
    ) -> Found {
        let reached = |wanted: Visibility| usize::from(level >= wanted);
        let (triggered, beyond_ulp) = (reached(Visibility::Triggered), reached(Visibility::BeyondUlp));
        let observable = reached(Visibility::Observable);
        let rules = flagged.map(|flagged| {
            let flagged = usize::from(flagged);
            RuleFound {
                detected: flagged,
                triggered: flagged * triggered,
                beyond_ulp: flagged * beyond_ulp,
                observable: flagged * observable,
            }
        });
        let (control, seen) = (self.entry.role() == Role::Control, flagged[BOUND] && flagged[VERDICT]);
        let any = flagged[BOUND] || flagged[VERDICT];
        let surprise = if control { any } else { observable == 1 && !seen };
        let mut gaps = [Gap::default(); DTYPES.len()];
        if let Some(place) = DTYPES.iter().position(|known| *known == dtype) {
            gaps[place] = match (control, observable == 1) {
                (true, _) => Gap::of_correct(share),
                (false, true) => Gap::of_wrong(share),
                (false, false) => Gap::default(),
            };
        }
        Found {
            cases: 1,
            undetermined: usize::from(undetermined),
            triggered,
            beyond_ulp,
            observable,
            rules,
            surprises: surprise.then_some(seed).into_iter().collect(),
            gaps,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::published::find;

    #[test]
    fn a_bug_is_calibrated_by_its_control_and_overflows_are_no_errors() {
        let [right, wrong] = ["rmsnorm", "rmsnorm_no_root"]
            .map(|name| envelopes(find(name).unwrap(), CaseInputs::Ours, RunnerChoice::Native, 5).unwrap());
        assert_eq!(right, wrong);
        let dtypes: Vec<DType> = right.iter().map(|(dtype, _)| *dtype).collect();
        assert_eq!(dtypes, DTYPES);
        // Large values overflow its sum of squares in more than a twentieth of the cases, and give 0 in place of 1.
        assert!(right.iter().all(|(_, envelope)| *envelope < 0.05), "{right:?}");
    }

    #[test]
    fn published_inputs_are_those_of_the_published_study() {
        let of = |name: &str| CaseInputs::Published.sampler(find(name).unwrap(), RunnerChoice::Native);
        assert_eq!(of("matmul").dtypes, [DType::F32]);
        let softmax = of("softmax");
        assert_eq!((softmax.dtypes, softmax.layouts), (vec![DType::F32, DType::F16], vec![Layout::Contiguous]));
        assert_eq!(softmax.strategy, Strategy::Default);
    }

    #[test]
    fn the_counts_of_cases_follow_the_shares() {
        let counts = |role| CaseInputs::ALL.map(|inputs| inputs.cases(role, 12_500));
        assert_eq!((counts(Role::Control), counts(Role::Bug)), ([2_500, 12_500], [500, 2_500]));
        assert_eq!(CaseInputs::Published.cases(Role::Bug, 1), 1);
    }
}
