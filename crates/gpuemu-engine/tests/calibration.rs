//! Controls that are measured, and controls that are none.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests fail by panicking")]

use std::sync::Arc;

use gpuemu_engine::case::{Layout, Strategy, materialise};
use gpuemu_engine::ops::{Call, Expectation, Op, OpError};
use gpuemu_engine::oracle::calibrate::{CalibrationError, Meter, Readings};
use gpuemu_engine::oracle::compare::read_bits;
use gpuemu_engine::runner::{Invocation, Runner, RunnerDescription, RunnerError, RunnerKind};
use gpuemu_engine::schema::Schema;
use gpuemu_engine::{Sampler, Subject, Tolerance, ops};
use gpuemu_tensor::DType;
use gpuemu_tensor::rng::case_seed;

/// A function of one number, applied to every element of the first input.
struct Elementwise<F: Fn(f64) -> f64 + Send> {
    description: RunnerDescription,
    function: F,
}

fn elementwise<F: Fn(f64) -> f64 + Send>(function: F) -> Elementwise<F> {
    let description = RunnerDescription {
        name: "control".to_string(),
        kind: RunnerKind::Callable,
        layouts: true,
        writes_into_buffers: true,
        inputs_watched: true,
        refills: false,
        remembers: false,
    };
    Elementwise { description, function }
}

impl<F: Fn(f64) -> f64 + Send> Runner for Elementwise<F> {
    fn description(&self) -> &RunnerDescription {
        &self.description
    }

    fn run(&mut self, invocation: &mut Invocation<'_>) -> Result<(), RunnerError> {
        let input = invocation.inputs[0].as_ref().unwrap();
        let (dtype, bytes) = (input.dtype(), input.contiguous_bytes());
        let size = dtype.size();
        let values: Vec<f64> =
            (0..bytes.len() / size).map(|index| dtype.decode(read_bits(&bytes, size, index))).collect();
        let output = &mut invocation.outputs[0];
        let start = output.offset() * size;
        for (index, x) in values.into_iter().enumerate() {
            let bits = dtype.encode((self.function)(x)).to_le_bytes();
            output.memory_mut()[start + index * size..start + (index + 1) * size].copy_from_slice(&bits[..size]);
        }
        Ok(())
    }
}

fn measured(
    subject: &Subject,
    dtype: DType,
    strategy: Strategy,
    control: &mut dyn Runner,
) -> Result<Readings, CalibrationError> {
    let layouts = vec![Layout::Contiguous];
    let sampler = Sampler { dtypes: vec![dtype], layouts, strategy, budget: 2_000, ..Sampler::default() };
    let mut meter = Meter::new(subject);
    for index in 0..60 {
        let case = materialise(subject.schema(), &subject.describe(&sampler, case_seed(0, index))).unwrap();
        meter.add(&case, control)?;
    }
    Ok(meter.readings().remove(&dtype).unwrap_or_default())
}

fn relu() -> Subject {
    Subject::new(ops::find("relu").unwrap())
}

fn right_relu(x: f64) -> f64 {
    if x.is_nan() || x > 0.0 { x } else { 0.0 }
}

/// Twice the input, by a reference that gives values and no bound.
struct Doubled(Schema);

impl Op for Doubled {
    fn schema(&self) -> &Schema {
        &self.0
    }

    fn expect(&self, call: &Call<'_>) -> Result<Vec<Expectation>, OpError> {
        call.elementwise("x", |x| (2.0 * x, 0.0))
    }
}

fn doubled() -> Subject {
    let schema = Schema::from_signature("double", "x[N] -> out[N]").unwrap();
    Subject::new(Arc::new(Doubled(schema))).tolerance(Tolerance::fixed_default(DType::F32))
}

#[test]
fn an_exact_control_has_no_error_and_the_bound_leaves_room_for_rounding_alone() {
    let readings = measured(&relu(), DType::F32, Strategy::Regular, &mut elementwise(right_relu)).unwrap();
    let envelope = readings.envelope().unwrap();
    assert_eq!((envelope.p95, envelope.largest), (0.0, 0.0));
    // Empty cases give nothing to measure.
    assert!((20..60).contains(&readings.errors.len()), "{}", readings.errors.len());
    assert_eq!(envelope.kept(DType::F32), (2.0 * f64::from(f32::from_bits(1)), 2f64.powi(-22)));
}

#[test]
fn a_control_that_breaks_the_bound_is_an_error() {
    let mut biased = elementwise(|x| 1.001 * right_relu(x));
    let error = measured(&relu(), DType::F32, Strategy::Regular, &mut biased).unwrap_err();
    let CalibrationError::Control { message, .. } = &error else { panic!("{error}") };
    assert!(message.contains("elements"), "{message}");
}

#[test]
fn without_a_bound_the_errors_are_what_they_are() {
    let mut biased = elementwise(|x| 2.002 * x);
    let readings = measured(&doubled(), DType::F32, Strategy::Regular, &mut biased).unwrap();
    let envelope = readings.envelope().unwrap();
    // |0.002 x| / (1 + |2 x|), of numbers up to about ten.
    assert!(envelope.largest > 5e-4 && envelope.largest < 1e-3, "{envelope:?}");
    assert!(readings.bounds.is_empty() && readings.looseness(1.0).is_none());
}

#[test]
fn without_a_bound_nan_and_infinity_still_have_to_be_where_they_belong() {
    // Left out where both sides have them...
    let mut right = elementwise(|x| x + x);
    let readings = measured(&doubled(), DType::F16, Strategy::Special, &mut right).unwrap();
    assert_eq!(readings.envelope().unwrap().largest, 0.0);
    // ... and an error where only the control has.
    for wrong in [f64::NAN, f64::INFINITY] {
        let mut control = elementwise(move |x| if x > 1.0 { wrong } else { x + x });
        assert!(measured(&doubled(), DType::F32, Strategy::Regular, &mut control).is_err(), "{wrong}");
    }
}

#[test]
fn a_tolerance_is_compared_with_the_bound_at_a_typical_element() {
    let subject = Subject::new(ops::find("tanh").unwrap());
    let readings = measured(&subject, DType::F32, Strategy::Regular, &mut elementwise(f64::tanh)).unwrap();
    let envelope = readings.envelope().unwrap();
    assert!(envelope.largest > 0.0 && envelope.largest < 1e-6, "{envelope:?}");
    let typical = readings.looseness(envelope.size()).unwrap();
    assert!(typical > 0.01 && typical < 10.0, "{typical}");
    assert_eq!(readings.looseness(2.0 * envelope.size()), Some(2.0 * typical));
}
