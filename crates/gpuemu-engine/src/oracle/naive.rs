//! The usual check, as people run it: `allclose` on one shape with a few random inputs. It is run
//! beside ours, so that "the usual check accepts this" is a measurement.

use gpuemu_common::DType;
use gpuemu_common::rng::case_seed;

use super::judge::run_case;
use super::subject::Subject;
use crate::case::values::Recipe;
use crate::case::{CaseDescriptor, GENERATOR_VERSION, Strategy, materialise_with};
use crate::runner::{Buffer, Runner};
use crate::schema::{Parameters, Sizes};

/// Random inputs that are tried.
pub const SEEDS: u64 = 5;

/// How inputs are drawn, as `torch.rand` and `torch.randn` would.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NaiveInputs {
    /// Uniform in [0, 1).
    Uniform,
    /// Bell-shaped, mean 0 and variance 1.
    Normal,
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
    let recipe = match inputs {
        NaiveInputs::Uniform => Recipe::Uniform { low: 0.0, width: 1.0 },
        NaiveInputs::Normal => Recipe::Bell,
    };
    (0..SEEDS).all(|index| {
        let descriptor = CaseDescriptor {
            generator: GENERATOR_VERSION,
            op: subject.schema().name.clone(),
            schema: subject.fingerprint().to_string(),
            seed: case_seed(0, index),
            dtype,
            sizes: sizes.clone(),
            layouts: Vec::new(),
            strategy: Strategy::Regular,
            parameters: parameters.clone(),
            present: Vec::new(),
        };
        let Ok(case) = materialise_with(subject.schema(), &descriptor, &recipe) else { return false };
        let Ok(expectations) = subject.expect(&case) else { return false };
        let Ok(outputs) = run_case(subject, &case, runner) else { return false };
        outputs.iter().zip(&expectations).all(|(buffer, expectation)| allclose(buffer, &expectation.values))
    })
}

/// `allclose(out, reference rounded to the dtype)`; NaN is never close.
fn allclose(buffer: &Buffer, expected: &[f64]) -> bool {
    let (dtype, tolerance) = (buffer.dtype(), tolerance(buffer.dtype()));
    let mut out = Vec::new();
    gpuemu_common::tensor::decode_slice(dtype, &buffer.contiguous_bytes(), &mut out);
    out.iter().zip(expected).all(|(out, y)| {
        let rounded = dtype.decode(dtype.encode(*y));
        (out - rounded).abs() <= tolerance + tolerance * rounded.abs()
    })
}
