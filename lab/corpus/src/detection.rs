//! The detection table: how many wrong kernels each rule sees, and how often it cries wolf.
//!
//! A *check* is one input tensor and one correct kernel. Rules are compared on the same outputs,
//! without escalation or any other help: this measures the comparison alone.

use gpuemu_engine::Sampler;
use gpuemu_engine::case::{Case, materialise};
use gpuemu_engine::ops::{self, Expectation};
use gpuemu_engine::oracle::cell::distance_to_cell;
use gpuemu_engine::oracle::compare::{Rule, read_bits};
use gpuemu_engine::oracle::judge::run_case;
use gpuemu_engine::oracle::{Subject, Tolerance, naive};
use gpuemu_engine::runner::Buffer;
use gpuemu_engine::schema::{FinalRounding, Precision};
use gpuemu_tensor::DType;
use gpuemu_tensor::rng::case_seed;
use rayon::prelude::*;
use serde::Serialize;

use crate::implementations::{Family, Implementation};
use crate::mutation::Mutation;
use crate::stand_in::StandIn;
use crate::style::Style;
use crate::visibility::{Visibility, visibility};

/// The rules that are compared.
pub const RULES: [&str; 4] = ["allclose 1e-4 / 1e-2", "fixed 1e-5 / 1e-2", "sound, cell", "tight, cell"];

/// Index of the rule that verdicts use.
pub const TIGHT: usize = 3;

/// What a rule did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct RuleCounts {
    pub alarms: usize,
    /// Wrong cases beyond 1 ulp found.
    pub beyond_ulp: usize,
    /// Wrong cases found that differ, but by no more than 1 ulp.
    pub triggered_only: usize,
    /// Mutants seen at least once.
    pub mutants: usize,
}

/// The table of one op, or of all.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Detection {
    /// Checks of correct kernels.
    pub checks: usize,
    /// Wrong cases beyond 1 ulp.
    pub beyond_ulp: usize,
    /// Wrong cases that differ by no more than 1 ulp.
    pub triggered_only: usize,
    pub mutants: usize,
    /// What each rule did.
    pub rules: [RuleCounts; RULES.len()],
    /// Largest error over δ (c = 1) of correct kernels: float32, float16, bfloat16.
    pub headroom: [f64; 3],
    /// Correct kernels that were flagged, by the tight rule, for whoever must mend it.
    pub alarms: Vec<String>,
    /// What was seen of each mutant.
    pub by_mutant: Vec<MutantCounts>,
}

/// How many cases show a mutant, and in how many of them it was caught: float32, float16, bfloat16.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MutantCounts {
    pub name: String,
    /// Cases in which every sound check must see it.
    pub observable: [usize; 3],
    /// Of those, the ones that the tight rule flags.
    pub caught: [usize; 3],
}

impl MutantCounts {
    /// Whether it was seen in some dtype, and caught wherever it was to be seen.
    pub fn is_caught(&self) -> bool {
        self.observable.iter().any(|count| *count > 0) && self.observable == self.caught
    }
}

/// The dtypes that are measured.
pub const DTYPES: [DType; 3] = [DType::F32, DType::F16, DType::BF16];

impl Detection {
    pub fn join(mut self, other: Self) -> Self {
        self.checks += other.checks;
        self.beyond_ulp += other.beyond_ulp;
        self.triggered_only += other.triggered_only;
        self.mutants += other.mutants;
        for (rule, added) in self.rules.iter_mut().zip(other.rules) {
            rule.alarms += added.alarms;
            rule.beyond_ulp += added.beyond_ulp;
            rule.triggered_only += added.triggered_only;
            rule.mutants += added.mutants;
        }
        for (largest, added) in self.headroom.iter_mut().zip(other.headroom) {
            *largest = largest.max(added);
        }
        self.alarms.extend(other.alarms);
        self.by_mutant.extend(other.by_mutant);
        self
    }

    /// The share of wrong cases beyond 1 ulp that a rule finds.
    pub fn share(&self, rule: usize) -> f64 {
        self.rules[rule].beyond_ulp as f64 / self.beyond_ulp.max(1) as f64
    }
}

fn subject(family: &Family, precision: Precision) -> Option<Subject> {
    Some(Subject::new(ops::find(family.op)?).precision(precision))
}

fn sampler() -> Sampler {
    Sampler { dtypes: DTYPES.to_vec(), budget: 6_000, ..Sampler::default() }
}

/// The class of a style without its order: any order is allowed for.
fn sound(style: &Style) -> Precision {
    Precision { order: None, ..style.precision() }
}

fn tolerances(dtype: DType) -> [Tolerance; 2] {
    let usual = naive::tolerance(dtype);
    let fixed = if dtype == DType::F32 { 1e-5 } else { 1e-2 };
    [Tolerance::Fixed { atol: usual, rtol: usual }, Tolerance::Fixed { atol: fixed, rtol: fixed }]
}

/// Which rules flag outputs. `tight` and `sound` differ in δ only.
fn flags(outputs: &[Buffer], tight: &[Expectation], sound: &[Expectation]) -> [bool; RULES.len()] {
    let mut flagged = [false; RULES.len()];
    for ((buffer, tight), sound) in outputs.iter().zip(tight).zip(sound) {
        let bytes = buffer.contiguous_bytes();
        let rule = |tolerance| Rule::new(buffer.dtype(), tolerance);
        let [usual, fixed] = tolerances(buffer.dtype());
        flagged[0] |= rule(usual).rejects(&bytes, tight);
        flagged[1] |= rule(fixed).rejects(&bytes, tight);
        flagged[2] |= rule(Tolerance::Bound).rejects(&bytes, sound);
        flagged[TIGHT] |= rule(Tolerance::Bound).rejects(&bytes, tight);
    }
    flagged
}

/// The largest distance over δ of an output, excused elements left out.
fn largest_ratio(outputs: &[Buffer], expectations: &[Expectation]) -> f64 {
    let mut largest = 0.0f64;
    for (buffer, expectation) in outputs.iter().zip(expectations) {
        let (bytes, dtype) = (buffer.contiguous_bytes(), buffer.dtype());
        let mut excuses = expectation.excuses.iter().peekable();
        for (index, (y, delta)) in expectation.values.iter().zip(&expectation.delta).enumerate() {
            if excuses.next_if(|excuse| excuse.index == index).is_some() || !y.is_finite() || *delta == 0.0 {
                continue;
            }
            let bits = read_bits(&bytes, dtype.size(), index);
            let distance = distance_to_cell(dtype, bits, *y, FinalRounding::Nearest);
            if distance.is_finite() {
                largest = largest.max(distance / delta);
            }
        }
    }
    largest
}

/// Measures one op: `tensors` inputs against every correct kernel, and every mutant on `mutant_cases`.
pub fn measure(family: &Family, base_seed: u64, tensors: u64, mutant_cases: u64) -> Detection {
    let correct = (0..tensors)
        .into_par_iter()
        .map(|index| check_correct(family, case_seed(base_seed, index)))
        .reduce(Detection::default, Detection::join);
    let wrong = family
        .mutants
        .par_iter()
        .enumerate()
        .map(|(number, mutation)| {
            // Every mutant has cases of its own.
            let seed = case_seed(base_seed ^ 0x6d75_7461, number as u64);
            check_mutant(family, *mutation, seed, mutant_cases)
        })
        .reduce(Detection::default, Detection::join);
    correct.join(wrong)
}

fn build(family: &Family, style: &Style, seed: u64) -> Option<(Subject, Case)> {
    let subject = subject(family, style.precision())?;
    let case = materialise(subject.schema(), &subject.describe(&sampler(), seed)).ok()?;
    Some((subject, case))
}

/// Checks every correct kernel of an op on the case of one seed.
pub fn check_correct(family: &Family, seed: u64) -> Detection {
    let mut found = Detection::default();
    for Implementation { kernel, style } in &family.implementations {
        let Some((subject, case)) = build(family, style, seed) else { continue };
        let any_order = subject.clone().precision(sound(style));
        // A bound that says nothing is refused, and such a case checks nothing.
        let (Ok(tight), Ok(sound)) = (subject.expect(&case), any_order.expect(&case)) else { continue };
        let mut stand_in = StandIn::new(family.op, *kernel, *style, None);
        found.checks += 1;
        let Ok(outputs) = run_case(&subject, &case, &mut stand_in) else {
            found.rules.iter_mut().for_each(|rule| rule.alarms += 1);
            continue;
        };
        for (rule, flagged) in found.rules.iter_mut().zip(flags(&outputs, &tight, &sound)) {
            rule.alarms += usize::from(flagged);
        }
        if found.rules[TIGHT].alarms > found.alarms.len() {
            found.alarms.push(format!("{} seed {seed} {style:?} {:?}", family.op, case.descriptor));
        }
        if let Some(place) = DTYPES.iter().position(|dtype| *dtype == case.descriptor.dtype) {
            found.headroom[place] = found.headroom[place].max(largest_ratio(&outputs, &tight));
        }
    }
    found
}

fn check_mutant(family: &Family, mutation: Mutation, base_seed: u64, cases: u64) -> Detection {
    let mut found = Detection { mutants: 1, ..Detection::default() };
    let Some(Implementation { kernel, style }) = family.implementations.first() else { return found };
    let mut stand_in = StandIn::new(family.op, *kernel, *style, Some(mutation));
    let mut seen = [false; RULES.len()];
    let name = format!("{mutation:?}");
    let mut counts = MutantCounts { name, observable: [0; 3], caught: [0; 3] };
    for index in 0..cases {
        let Some((subject, case)) = build(family, style, case_seed(base_seed, index)) else { continue };
        let any_order = subject.clone().precision(sound(style));
        let (Ok(tight), Ok(sound)) = (subject.expect(&case), any_order.expect(&case)) else { continue };
        let level = visibility(&subject, &stand_in, &case, &tight);
        if level == Visibility::Untouched {
            continue;
        }
        let beyond = level >= Visibility::BeyondUlp;
        found.beyond_ulp += usize::from(beyond);
        found.triggered_only += usize::from(!beyond);
        let flagged = match run_case(&subject, &case, &mut stand_in) {
            Ok(outputs) => flags(&outputs, &tight, &sound),
            Err(_) => [true; RULES.len()],
        };
        if let Some(place) = DTYPES.iter().position(|dtype| *dtype == case.descriptor.dtype)
            && level == Visibility::Observable
        {
            counts.observable[place] += 1;
            counts.caught[place] += usize::from(flagged[TIGHT]);
        }
        for ((rule, flagged), seen) in found.rules.iter_mut().zip(flagged).zip(&mut seen) {
            rule.beyond_ulp += usize::from(flagged && beyond);
            rule.triggered_only += usize::from(flagged && !beyond);
            *seen |= flagged;
        }
    }
    for (rule, seen) in found.rules.iter_mut().zip(seen) {
        rule.mutants += usize::from(seen);
    }
    found.by_mutant.push(counts);
    found
}
