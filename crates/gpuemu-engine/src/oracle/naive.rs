//! The usual check, as people run it: `allclose` on one shape with a few random inputs. It is run
//! beside ours, so that "the usual check accepts this" is a measurement.

use gpuemu_tensor::DType;
use gpuemu_tensor::rng::case_seed;

use super::judge::run_case;
use super::subject::Subject;
use super::tolerance::Tolerance;
use crate::case::values::Recipe;
use crate::case::{CaseDescriptor, GENERATOR_VERSION, Strategy, materialise_with};
use crate::ops::Expectation;
use crate::runner::{Buffer, Runner};
use crate::schema::{Parameters, Sizes};

/// Random inputs that are tried.
pub const SEEDS: u64 = 5;

/// How inputs are drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NaiveInputs {
    /// Uniform in [0, 1), as `torch.rand` does.
    Uniform,
    /// Uniform in [−10, 10), as the published study did.
    Wide,
    /// Bell-shaped, mean 0 and variance 1, as `torch.randn` does.
    Normal,
}

impl NaiveInputs {
    pub const ALL: [NaiveInputs; 3] = [NaiveInputs::Uniform, NaiveInputs::Wide, NaiveInputs::Normal];

    /// The name used in reports.
    pub const fn name(self) -> &'static str {
        match self {
            NaiveInputs::Uniform => "uniform [0, 1)",
            NaiveInputs::Wide => "uniform [-10, 10)",
            NaiveInputs::Normal => "normal",
        }
    }

    fn recipe(self) -> Recipe {
        match self {
            NaiveInputs::Uniform => Recipe::Uniform { low: 0.0, width: 1.0 },
            NaiveInputs::Wide => Recipe::Uniform { low: -10.0, width: 20.0 },
            NaiveInputs::Normal => Recipe::Bell,
        }
    }
}

/// One setting of the usual check.
#[derive(Debug, Clone)]
pub struct NaiveSetting {
    pub sizes: Sizes,
    /// Parameters of the op.
    pub parameters: Parameters,
    /// Dtype of the case.
    pub dtype: DType,
    /// How inputs are drawn.
    pub inputs: NaiveInputs,
    pub base_seed: u64,
}

impl NaiveSetting {
    /// The case of one of the seeds.
    pub fn descriptor(&self, subject: &Subject, index: u64) -> CaseDescriptor {
        CaseDescriptor {
            generator: GENERATOR_VERSION,
            op: subject.schema().name.clone(),
            schema: subject.fingerprint().to_string(),
            seed: case_seed(self.base_seed, index),
            dtype: self.dtype,
            sizes: self.sizes.clone(),
            layouts: Vec::new(),
            values: Strategy::Regular,
            parameters: self.parameters.clone(),
            present: Vec::new(),
        }
    }
}

/// atol and rtol of the usual check: 1e-4 for float32, 1e-2 for the half formats.
pub fn tolerance(dtype: DType) -> f64 {
    if matches!(dtype, DType::F32 | DType::F64) { 1e-4 } else { 1e-2 }
}

/// Whether `allclose` accepts the runner's output on every seed; an error of the runner is a no.
pub fn accepts(
    subject: &Subject,
    runner: &mut dyn Runner,
    sizes: &Sizes,
    parameters: &Parameters,
    dtype: DType,
    inputs: NaiveInputs,
) -> bool {
    let setting = NaiveSetting { sizes: sizes.clone(), parameters: parameters.clone(), dtype, inputs, base_seed: 0 };
    let usual = |dtype| Tolerance::Fixed { atol: tolerance(dtype), rtol: tolerance(dtype) };
    accepted(subject, runner, &setting, &[&usual]).is_ok_and(|accepted| accepted == [true])
}

/// Which of several checks accept the runner's output on every seed. A check is an error allowed for a dtype. An error
/// of the runner is a no of all; a case that cannot be made, or of which nothing is expected, is an error.
pub fn accepted(
    subject: &Subject,
    runner: &mut dyn Runner,
    setting: &NaiveSetting,
    checks: &[&dyn Fn(DType) -> Tolerance],
) -> Result<Vec<bool>, String> {
    let mut accepted = vec![true; checks.len()];
    for index in 0..SEEDS {
        let descriptor = setting.descriptor(subject, index);
        let case = materialise_with(subject.schema(), &descriptor, &setting.inputs.recipe());
        let case = case.map_err(|error| error.to_string())?;
        let expectations = subject.expect(&case).map_err(|error| error.to_string())?;
        let Ok(outputs) = run_case(subject, &case, runner) else { return Ok(vec![false; checks.len()]) };
        for (check, accepted) in checks.iter().zip(&mut accepted).filter(|(_, accepted)| **accepted) {
            let close = |(buffer, expectation): (&Buffer, &Expectation)| {
                allclose(buffer, &expectation.values, check(buffer.dtype()))
            };
            *accepted = outputs.iter().zip(&expectations).all(close);
        }
        if !accepted.contains(&true) {
            break;
        }
    }
    Ok(accepted)
}

/// `allclose(out, reference rounded to the dtype)`; NaN is never close.
fn allclose(buffer: &Buffer, expected: &[f64], tolerance: Tolerance) -> bool {
    let dtype = buffer.dtype();
    let mut out = Vec::new();
    gpuemu_tensor::tensor::decode_slice(dtype, &buffer.contiguous_bytes(), &mut out);
    out.iter().zip(expected).all(|(out, y)| {
        let rounded = dtype.decode(dtype.encode(*y));
        (out - rounded).abs() <= tolerance.allowed(rounded, 0.0)
    })
}
