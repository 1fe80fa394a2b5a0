//! Tolerances measured on a trusted control: the p95 of its errors times 1.5.

use std::collections::BTreeMap;

use gpuemu_tensor::DType;
use gpuemu_tensor::rng::case_seed;
use thiserror::Error;

use super::allowance::allowance;
use super::compare::{Rule, read_bits};
use super::envelope::{Envelope, median};
use super::judge::{judge_expected, run_case};
use super::measure::measure;
use super::subject::Subject;
use super::tolerance::Tolerance;
use crate::case::{Case, Sampler, materialise};
use crate::ops::{Expectation, OpError};
use crate::runner::Runner;
use crate::schema::TensorSpec;
use crate::verdict::{Outcome, Verdict};

pub use super::envelope::MARGIN;

/// The share of this tolerance that an element uses is its error: |out − y|/(1 + |y|).
const UNIT: Tolerance = Tolerance::Calibrated { atol: 1.0, rtol: 1.0 };

/// What a control's errors say.
#[derive(Debug, Clone, PartialEq)]
pub struct Calibration {
    /// p95 × 1.5, as both atol and rtol.
    pub envelope: Tolerance,
    /// The tightest pair with which every case passes.
    pub tightest: Tolerance,
    /// The largest |out − y|/(1 + |y|) of each case, in ascending order.
    pub errors: Vec<f64>,
}

/// Why nothing could be calibrated.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum CalibrationError {
    #[error("the control failed on the case with seed {seed}: {message}")]
    Control { seed: u64, message: String },
    /// The reference gave no answer: the control is not to blame.
    #[error("the reference failed on the case with seed {seed}: {message}")]
    Reference { seed: u64, message: String },
    /// No case gave a finite number to measure.
    #[error("none of {0} cases gave a finite number to measure")]
    NothingMeasured(usize),
}

/// Measures a trusted control over generated cases of one dtype, all outputs together. Whether it is right is not
/// looked at: that is for whoever trusts it.
pub fn calibrate(
    subject: &Subject,
    control: &mut dyn Runner,
    sampler: &Sampler,
    dtype: DType,
    base_seed: u64,
    cases: usize,
) -> Result<Calibration, CalibrationError> {
    let sampler = Sampler { dtypes: vec![dtype], ..sampler.clone() };
    let mut errors = Vec::with_capacity(cases);
    for index in 0..cases as u64 {
        let seed = case_seed(base_seed, index);
        let failed = |message: String| CalibrationError::Control { seed, message };
        let descriptor = subject.describe(&sampler, seed);
        let case = materialise(subject.schema(), &descriptor).map_err(|error| failed(error.to_string()))?;
        let expectations = subject.expect(&case).map_err(|error| failed(error.to_string()))?;
        let measured = errors_of(subject, &case, &expectations, control).map_err(failed)?;
        errors.extend(measured.into_iter().map(|(_, error)| error).reduce(f64::max));
    }
    errors.sort_by(f64::total_cmp);
    let envelope = Envelope::of_sorted(&errors).ok_or(CalibrationError::NothingMeasured(cases))?;
    Ok(Calibration { envelope: envelope.tolerance(), tightest: envelope.tightest(), errors })
}

/// Measures a control case by case, and judges it as any kernel is judged: one that is wrong is no control.
pub struct Meter<'a> {
    subject: &'a Subject,
    judged: Subject,
    readings: BTreeMap<DType, Readings>,
}

/// What was measured of outputs of one dtype.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Readings {
    /// The largest |out − y|/(1 + |y|) of each case that gave a finite number.
    pub errors: Vec<f64>,
    /// What the bound allows at the middle element of each case, by the same measure; empty without a bound.
    pub bounds: Vec<f64>,
}

impl Readings {
    /// The envelope of the errors; `None` where there are none.
    pub fn envelope(&self) -> Option<Envelope> {
        let mut sorted = self.errors.clone();
        sorted.sort_by(f64::total_cmp);
        Envelope::of_sorted(&sorted)
    }

    /// How many times what the bound allows at the middle element of the middle case a tolerance allows there.
    pub fn looseness(&self, tolerance: f64) -> Option<f64> {
        median(self.bounds.clone()).filter(|bound| *bound > 0.0).map(|bound| tolerance / bound)
    }
}

impl<'a> Meter<'a> {
    /// A meter of one control. A subject with a bound holds the control to it; one without holds it to all other
    /// checks, among them that it is NaN and infinite where the reference is.
    pub fn new(subject: &'a Subject) -> Self {
        let mut judged = subject.clone();
        if !subject.tolerance.is_bound() {
            judged.tolerance = Tolerance::Fixed { atol: f64::MAX, rtol: 0.0 };
            let exact = DType::ALL.into_iter().filter(|dtype| !dtype.is_float());
            judged.tolerances = exact.map(|dtype| (dtype, Tolerance::Fixed { atol: 0.0, rtol: 0.0 })).collect();
        }
        Self { subject, judged, readings: BTreeMap::new() }
    }

    /// Runs, judges and measures one case; whether it gave something to measure.
    pub fn add(&mut self, case: &Case, control: &mut dyn Runner) -> Result<bool, CalibrationError> {
        let seed = case.descriptor.seed;
        let failed = |message: String| CalibrationError::Control { seed, message };
        let unanswered = |message: String| CalibrationError::Reference { seed, message };
        let expectations = match self.subject.expect(case) {
            Ok(expectations) => expectations,
            Err(error @ OpError::ReferenceFailed { .. }) => return Err(unanswered(error.to_string())),
            // Nothing can be said of this case, not even by a verdict.
            Err(_) => return Ok(false),
        };
        let verdict = judge_expected(&self.judged, case, Ok(expectations.clone()), control);
        match verdict.outcome {
            Outcome::Failed => return Err(failed(reason(&verdict))),
            // Of a case that follows from this one.
            Outcome::Error => return Err(unanswered(verdict.result.message.unwrap_or_default())),
            Outcome::Passed | Outcome::Undetermined => {}
        }
        let measured = errors_of(self.subject, case, &expectations, control).map_err(failed)?;
        let any = !measured.is_empty();
        for (dtype, error) in largest_by_dtype(measured) {
            self.readings.entry(dtype).or_default().errors.push(error);
        }
        if self.subject.tolerance.is_bound() {
            for (dtype, bound) in bounds_of(self.subject, case, &expectations) {
                self.readings.entry(dtype).or_default().bounds.push(bound);
            }
        }
        Ok(any)
    }

    /// What was measured, by the dtype of outputs. Only float outputs have a size of error: others are exact.
    pub fn readings(self) -> BTreeMap<DType, Readings> {
        self.readings.into_iter().filter(|(dtype, _)| dtype.is_float()).collect()
    }
}

fn reason(verdict: &Verdict) -> String {
    verdict.finding().map(|finding| finding.explanation.clone()).unwrap_or_default()
}

fn largest_by_dtype(measured: Vec<(DType, f64)>) -> BTreeMap<DType, f64> {
    let mut largest = BTreeMap::new();
    for (dtype, error) in measured {
        let most: &mut f64 = largest.entry(dtype).or_default();
        *most = most.max(error);
    }
    largest
}

/// The dtype and the largest |out − y|/(1 + |y|) of each output that has a finite number to measure.
fn errors_of(
    subject: &Subject,
    case: &Case,
    expectations: &[Expectation],
    control: &mut dyn Runner,
) -> Result<Vec<(DType, f64)>, String> {
    let outputs = run_case(subject, case, control).map_err(|error| error.to_string())?;
    let mut errors = Vec::new();
    let specs = subject.schema().outputs.iter().filter(|spec| spec.is_in(&case.descriptor));
    for ((spec, buffer), expectation) in specs.zip(&outputs).zip(expectations) {
        let (dtype, shape) = (spec.dtype_in(case.descriptor.dtype), spec.shape(&case.descriptor.sizes));
        if Some(buffer.shape()) != shape.as_deref() || buffer.dtype() != dtype {
            let (name, found, kind) = (&spec.name, buffer.shape(), buffer.dtype());
            return Err(format!("output '{name}' is {kind} of shape {found:?}, expected {dtype} of {shape:?}"));
        }
        let bytes = buffer.contiguous_bytes();
        if is_measurable(dtype, &bytes, expectation) {
            let rule = Rule { tolerance: UNIT, ..subject.rule(dtype) };
            errors.push((dtype, measure(&rule, &bytes, expectation).tolerance_share));
        }
    }
    Ok(errors)
}

/// Whether an element is a number on both sides and not excused: an output without one has no error, not none.
fn is_measurable(dtype: DType, bytes: &[u8], expectation: &Expectation) -> bool {
    let excused = |index: usize| expectation.excuses.binary_search_by_key(&index, |excuse| excuse.index).is_ok();
    let finite = |index: usize| dtype.decode(read_bits(bytes, dtype.size(), index)).is_finite();
    let mut elements = expectation.values.iter().enumerate();
    elements.any(|(index, y)| y.is_finite() && finite(index) && !excused(index))
}

/// The dtype of each output and what the bound allows at its middle element, over 1 + |y|.
fn bounds_of(subject: &Subject, case: &Case, expectations: &[Expectation]) -> Vec<(DType, f64)> {
    let specs = subject.schema().outputs.iter().filter(|spec| spec.is_in(&case.descriptor));
    let middle = |(spec, expectation): (&TensorSpec, &Expectation)| {
        let dtype = spec.dtype_in(case.descriptor.dtype);
        let allowed = allowance(&subject.rule(dtype), expectation);
        let shares = allowed.iter().zip(&expectation.values).map(|(allowed, y)| allowed / (1.0 + y.abs()));
        Some((dtype, median(shares.filter(|share| share.is_finite()).collect())?))
    };
    specs.zip(expectations).filter_map(middle).collect()
}
