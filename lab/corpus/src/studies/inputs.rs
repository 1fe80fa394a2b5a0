//! P3: what each published kind of input finds, by the published check and by our verdict.

use gpuemu_engine::Sampler;
use gpuemu_engine::case::materialise;
use gpuemu_engine::ops::Expectation;
use gpuemu_engine::oracle::compare::{Rule, read_bits};
use gpuemu_engine::oracle::judge::run_case;
use gpuemu_engine::oracle::{Subject, Tolerance, judge_expected};
use gpuemu_engine::runner::{Buffer, Runner, RunnerKind};
use gpuemu_engine::verdict::Outcome;
use gpuemu_model::Strategy;
use gpuemu_tensor::DType;
use gpuemu_tensor::rng::case_seed;
use rayon::prelude::*;
use serde::Serialize;

use super::{Progress, seed_of, subject_of};
use crate::published::{Entry, KERNELS, Role, RunnerChoice};
use crate::visibility::{Visibility, visibility};

/// A kind of input, by its published name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NamedStrategy {
    pub name: &'static str,
    /// How values are drawn.
    pub strategy: Strategy,
    /// The one dtype, where it is restricted to one.
    pub dtype: Option<DType>,
}

const fn values(strategy: Strategy) -> NamedStrategy {
    NamedStrategy { name: strategy.name(), strategy, dtype: None }
}

const fn single(name: &'static str, dtype: DType) -> NamedStrategy {
    NamedStrategy { name, strategy: Strategy::Default, dtype: Some(dtype) }
}

/// The seven of the published ablation.
pub const STRATEGIES: [NamedStrategy; 7] = [
    values(Strategy::Adversarial),
    values(Strategy::Boundary),
    values(Strategy::Default),
    values(Strategy::Regular),
    values(Strategy::NanInjected),
    single("single_dtype_float32", DType::F32),
    single("single_dtype_float16", DType::F16),
];

/// The checks that are compared.
pub const CHECKS: [&str; 2] = ["published", "ours"];

/// Index of the published check: fixed tolerances, and any NaN fails.
pub const PUBLISHED: usize = 0;
/// Index of our verdict.
pub const OURS: usize = 1;

/// What one check found of one kernel with one kind of input.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct CheckFound {
    /// Cases that it flags.
    pub detected: usize,
    /// Of those, the ones in which every sound check must see the bug.
    pub observable: usize,
    /// Of those, the ones in which the bug changes nothing: found by accident.
    pub untouched: usize,
}

/// What was found of one kernel with one kind of input.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Found {
    pub cases: usize,
    /// Cases about which nothing could be said.
    pub undetermined: usize,
    /// Cases in which every sound check must see the bug.
    pub observable: usize,
    /// Cases whose expected output has a NaN.
    pub with_nan: usize,
    /// For each of [`CHECKS`] what it found.
    pub checks: [CheckFound; CHECKS.len()],
}

impl Found {
    /// Two sets of cases together.
    pub fn join(mut self, other: Self) -> Self {
        self.cases += other.cases;
        self.undetermined += other.undetermined;
        self.observable += other.observable;
        self.with_nan += other.with_nan;
        for (check, added) in self.checks.iter_mut().zip(other.checks) {
            check.detected += added.detected;
            check.observable += added.observable;
            check.untouched += added.untouched;
        }
        self
    }
}

/// One kernel with one kind of input.
#[derive(Debug, Clone)]
pub struct Row {
    pub entry: Entry,
    /// The kind of input.
    pub strategy: NamedStrategy,
    pub runner: RunnerKind,
    pub found: Found,
}

/// What a check found with one kind of input, over all kernels.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Total {
    /// All cases of kernels of a role.
    pub found: Found,
    pub kernels: usize,
    /// Kernels that each of [`CHECKS`] flags at least once.
    pub flagged: [usize; CHECKS.len()],
}

/// The rows of a kind of input and a role together.
pub fn total(rows: &[Row], strategy: &NamedStrategy, role: Role) -> Total {
    let mut total = Total::default();
    for row in rows.iter().filter(|row| row.strategy == *strategy && row.entry.role() == role) {
        total.found = total.found.join(row.found);
        total.kernels += 1;
        for (flagged, check) in total.flagged.iter_mut().zip(row.found.checks) {
            *flagged += usize::from(check.detected > 0);
        }
    }
    total
}

/// How many units of progress a study of so many cases reports.
pub fn work(cases: u64) -> u64 {
    (STRATEGIES.len() * KERNELS.len()) as u64 * cases
}

/// Runs the study: `cases` cases for each kernel and kind of input.
pub fn run(choice: RunnerChoice, base_seed: u64, cases: u64, progress: Progress<'_>) -> Result<Vec<Row>, String> {
    let mut rows = Vec::new();
    for strategy in STRATEGIES {
        for entry in &KERNELS {
            rows.push(row(entry, strategy, choice, base_seed, cases, progress)?);
        }
    }
    Ok(rows)
}

fn row(
    entry: &Entry,
    strategy: NamedStrategy,
    choice: RunnerChoice,
    base_seed: u64,
    cases: u64,
    progress: Progress<'_>,
) -> Result<Row, String> {
    let subject = subject_of(entry, choice)?;
    let mut sampler = Sampler { strategy: strategy.strategy, ..entry.sampler(choice) };
    if let Some(dtype) = strategy.dtype {
        sampler.dtypes = vec![dtype];
    }
    let base = seed_of(base_seed, strategy.name, entry.number);
    let one = |index: u64| {
        let found = case(entry, &subject, &sampler, entry.runner(choice)?.as_mut(), case_seed(base, index));
        progress(1);
        Ok::<_, String>(found)
    };
    let join = |left: Found, right: Found| Ok(left.join(right));
    let found = (0..cases).into_par_iter().map(one).try_reduce(Found::default, join)?;
    let runner = entry.runner(choice)?.description().kind;
    Ok(Row { entry: *entry, strategy, runner, found })
}

fn case(entry: &Entry, subject: &Subject, sampler: &Sampler, runner: &mut dyn Runner, seed: u64) -> Found {
    // Never a pass: of a case that cannot be built nothing is known.
    let nothing = Found { cases: 1, undetermined: 1, ..Found::default() };
    let Ok(case) = materialise(subject.schema(), &subject.describe(sampler, seed)) else { return nothing };
    let Ok(expectations) = subject.expect(&case) else { return nothing };
    let level = match entry.role() {
        Role::Bug => visibility(subject, &entry.stand_in(), &case, &expectations),
        Role::Control => Visibility::Untouched,
    };
    let published = match run_case(subject, &case, runner) {
        Ok(outputs) => outputs.iter().zip(&expectations).any(|(buffer, expected)| fails(buffer, expected)),
        Err(_) => true,
    };
    let with_nan = expectations.iter().any(|expected| expected.values.iter().any(|y| y.is_nan()));
    let verdict = judge_expected(subject, &case, Ok(expectations), runner);
    let checks = [published, verdict.failed()].map(|flagged| CheckFound {
        detected: usize::from(flagged),
        observable: usize::from(flagged && level == Visibility::Observable),
        untouched: usize::from(flagged && level == Visibility::Untouched),
    });
    let observable = usize::from(level == Visibility::Observable);
    let undetermined = usize::from(matches!(verdict.outcome, Outcome::Undetermined | Outcome::Error));
    Found { cases: 1, undetermined, observable, with_nan: usize::from(with_nan), checks }
}

/// The published check: a fixed tolerance by dtype, and any NaN fails, expected or not.
fn fails(buffer: &Buffer, expected: &Expectation) -> bool {
    let (bytes, dtype) = (buffer.contiguous_bytes(), buffer.dtype());
    let rule = Rule::new(dtype, Tolerance::fixed_default(dtype));
    expected.values.iter().enumerate().any(|(index, y)| {
        let bits = read_bits(&bytes, dtype.size(), index);
        y.is_nan() || dtype.decode(bits).is_nan() || rule.judge(bits, *y, 0.0).is_err()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_the_strategies() {
        for named in STRATEGIES {
            assert_eq!(named.name.parse::<Strategy>().unwrap(), named.strategy, "{}", named.name);
        }
    }

    #[test]
    fn any_nan_fails_the_published_check() {
        let mut buffer = Buffer::poisoned(DType::F32, vec![2], 0);
        let expected = |values: Vec<f64>| Expectation { delta: vec![0.0; 2], values, excuses: Vec::new() };
        buffer.set_data(&[1.0f32, f32::INFINITY].map(f32::to_le_bytes).concat());
        assert!(!fails(&buffer, &expected(vec![1.0, f64::INFINITY])));
        assert!(fails(&buffer, &expected(vec![1.1, f64::INFINITY])));
        buffer.set_data(&[1.0f32, f32::NAN].map(f32::to_le_bytes).concat());
        assert!(fails(&buffer, &expected(vec![1.0, f64::NAN])));
    }
}
