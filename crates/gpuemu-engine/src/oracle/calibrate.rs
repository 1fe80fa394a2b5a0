//! Tolerances measured on a trusted control: the p95 of its errors times 1.5.

use gpuemu_common::DType;
use gpuemu_common::rng::case_seed;
use thiserror::Error;

use super::compare::read_bits;
use super::judge::run_case;
use super::subject::Subject;
use super::tolerance::Tolerance;
use crate::case::{Case, Sampler, materialise};
use crate::runner::Runner;

/// The envelope is this many times the 95th percentile.
pub const MARGIN: f64 = 1.5;

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
    /// The control failed.
    #[error("the control failed on the case with seed {seed}: {message}")]
    Control {
        /// The case.
        seed: u64,
        /// What happened.
        message: String,
    },
    /// No case gave a finite number to measure.
    #[error("none of {0} cases gave a finite number to measure")]
    NothingMeasured(usize),
}

/// Measures a trusted control over generated cases of one dtype.
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
        if let Some(error) = largest_error(subject, &case, control).map_err(failed)? {
            errors.push(error);
        }
    }
    errors.sort_by(f64::total_cmp);
    let Some(largest) = errors.last().copied() else { return Err(CalibrationError::NothingMeasured(cases)) };
    // The smallest error that at least 95 % of the cases do not exceed.
    let rank = (errors.len() * 95).div_ceil(100).max(1) - 1;
    let envelope = MARGIN * errors[rank];
    Ok(Calibration {
        envelope: Tolerance::Calibrated { atol: envelope, rtol: envelope },
        tightest: Tolerance::Calibrated { atol: largest, rtol: largest },
        errors,
    })
}

/// The largest |out − y|/(1 + |y|) of a case; `None` where nothing is finite.
fn largest_error(subject: &Subject, case: &Case, control: &mut dyn Runner) -> Result<Option<f64>, String> {
    let expectations = subject.expect(case).map_err(|error| error.to_string())?;
    let outputs = run_case(subject, case, control).map_err(|error| error.to_string())?;
    let mut largest = None;
    let specs = subject.schema().outputs.iter().filter(|spec| case.descriptor.has(spec));
    for ((spec, buffer), expectation) in specs.zip(&outputs).zip(&expectations) {
        let (dtype, shape) = (spec.dtype_in(case.descriptor.dtype), spec.shape(&case.descriptor.sizes));
        if Some(buffer.shape()) != shape.as_deref() || buffer.dtype() != dtype {
            let (name, found, kind) = (&spec.name, buffer.shape(), buffer.dtype());
            return Err(format!("output '{name}' is {kind} of shape {found:?}, expected {dtype} of {shape:?}"));
        }
        let bytes = buffer.contiguous_bytes();
        for (index, y) in expectation.values.iter().enumerate() {
            let out = buffer.dtype().decode(read_bits(&bytes, buffer.dtype().size(), index));
            if y.is_finite() && out.is_finite() {
                let error = (out - y).abs() / (1.0 + y.abs());
                largest = Some(largest.map_or(error, |most: f64| most.max(error)));
            }
        }
    }
    Ok(largest)
}
