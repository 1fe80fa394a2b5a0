//! How close correct kernels come to the bound, and how far observable bugs lie beyond it.

use gpuemu_engine::Sampler;
use gpuemu_engine::case::materialise;
use gpuemu_engine::ops::{self, Expectation};
use gpuemu_engine::oracle::Subject;
use gpuemu_engine::oracle::judge::run_case;
use gpuemu_engine::oracle::measure::measure;
use gpuemu_engine::runner::Buffer;
use gpuemu_tensor::DType;
use gpuemu_tensor::rng::case_seed;
use rayon::prelude::*;
use serde::Serialize;

use super::tolerance::Row;
use super::{Progress, seed_of};
use crate::detection::DTYPES;
use crate::implementations::{Family, Implementation, families};
use crate::mutation::Mutation;
use crate::published::KERNELS;
use crate::stand_in::StandIn;
use crate::visibility::{Visibility, visibility};

/// Errors over the bound. A case counts with its largest one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Gap {
    /// The largest of correct kernels.
    pub correct: Option<f64>,
    /// The smallest of observable bugs; none where there were no such cases.
    pub wrong: Option<f64>,
    /// Observable cases whose error has no size: NaN, an infinity, a crash, or a bound of zero.
    pub without_size: usize,
}

impl Gap {
    /// Of a case of a correct kernel.
    pub fn of_correct(share: f64) -> Self {
        Self { correct: Some(share), ..Self::default() }
    }

    /// Of an observable case of a wrong kernel.
    pub fn of_wrong(share: f64) -> Self {
        if share.is_finite() {
            Self { wrong: Some(share), ..Self::default() }
        } else {
            Self { without_size: 1, ..Self::default() }
        }
    }

    /// Two sets of cases together.
    pub fn join(self, other: Self) -> Self {
        let both = |left: Option<f64>, right: Option<f64>, choose: fn(f64, f64) -> f64| match (left, right) {
            (Some(left), Some(right)) => Some(choose(left, right)),
            (left, right) => left.or(right),
        };
        Self {
            correct: both(self.correct, other.correct, f64::max),
            wrong: both(self.wrong, other.wrong, f64::min),
            without_size: self.without_size + other.without_size,
        }
    }
}

/// The largest error of a case over what the bound allows; infinite where it has no size.
pub fn case_share(subject: &Subject, outputs: &[Buffer], expectations: &[Expectation]) -> f64 {
    let mut largest = 0.0f64;
    for (buffer, expectation) in outputs.iter().zip(expectations) {
        let (bytes, rule) = (buffer.contiguous_bytes(), subject.rule(buffer.dtype()));
        let share = measure(&rule, &bytes, expectation).tolerance_share;
        // What fails by its class, not by its size, is not measured.
        let unsized_failure = share <= 1.0 && rule.rejects(&bytes, expectation);
        largest = largest.max(if unsized_failure { f64::INFINITY } else { share });
    }
    largest
}

/// The headroom of one op and dtype.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Headroom {
    pub op: &'static str,
    pub dtype: DType,
    /// Of the published kernels.
    pub published: Gap,
    /// Of the op's mutants, wherever they are observable.
    pub mutants: Gap,
}

fn corpus_families() -> Vec<Family> {
    let mut families = families();
    families.retain(|family| KERNELS.iter().any(|entry| entry.op() == family.op));
    families
}

/// How many units of progress the mutants report.
pub fn work(cases: u64) -> u64 {
    corpus_families().iter().map(|family| family.mutants.len() as u64 * cases).sum()
}

/// The headroom of every op of the corpus: that of a study's rows, and of `cases` cases of each mutant.
pub fn run(rows: &[Row], base_seed: u64, cases: u64, progress: Progress<'_>) -> Vec<Headroom> {
    let mut all = Vec::new();
    for family in corpus_families() {
        let mut mutants = [Gap::default(); DTYPES.len()];
        for (number, mutation) in family.mutants.iter().enumerate() {
            let seed = seed_of(base_seed, family.op, number as u32);
            let gaps = (0..cases).into_par_iter().map(|index| {
                let gaps = mutant_case(&family, *mutation, case_seed(seed, index)).unwrap_or_default();
                progress(1);
                gaps
            });
            mutants = join(mutants, gaps.reduce(Default::default, join));
        }
        let of_op = rows.iter().filter(|row| row.entry.op() == family.op);
        let published = of_op.fold([Gap::default(); DTYPES.len()], |gaps, row| join(gaps, row.found.gaps));
        for ((dtype, published), mutants) in DTYPES.into_iter().zip(published).zip(mutants) {
            all.push(Headroom { op: family.op, dtype, published, mutants });
        }
    }
    all
}

type Gaps = [Gap; DTYPES.len()];

fn join(left: Gaps, right: Gaps) -> Gaps {
    std::array::from_fn(|place| left[place].join(right[place]))
}

/// The gap of one case of a mutant; none where it is not observable.
fn mutant_case(family: &Family, mutation: Mutation, seed: u64) -> Option<Gaps> {
    let Implementation { kernel, style } = family.implementations.first()?;
    let subject = Subject::new(ops::find(family.op)?).precision(style.precision());
    let sampler = Sampler { dtypes: DTYPES.to_vec(), ..Sampler::default() };
    let case = materialise(subject.schema(), &subject.describe(&sampler, seed)).ok()?;
    let expectations = subject.expect(&case).ok()?;
    let mut stand_in = StandIn::new(family.op, *kernel, *style, Some(mutation));
    if visibility(&subject, &stand_in, &case, &expectations) != Visibility::Observable {
        return None;
    }
    let share = match run_case(&subject, &case, &mut stand_in) {
        Ok(outputs) => case_share(&subject, &outputs, &expectations),
        Err(_) => f64::INFINITY,
    };
    let mut gaps = Gaps::default();
    let place = DTYPES.iter().position(|known| *known == case.descriptor.dtype)?;
    gaps[place] = Gap::of_wrong(share);
    Some(gaps)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_keep_the_largest_correct_and_the_smallest_wrong() {
        let joined = [Gap::of_correct(0.2), Gap::of_correct(0.7), Gap::of_wrong(9.0), Gap::of_wrong(3.0)]
            .into_iter()
            .chain([Gap::of_wrong(f64::INFINITY)])
            .fold(Gap::default(), Gap::join);
        assert_eq!(joined, Gap { correct: Some(0.7), wrong: Some(3.0), without_size: 1 });
    }
}
