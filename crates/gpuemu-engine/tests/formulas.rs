//! Correct kernels write one op by several formulas: none of them may be flagged.
#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

use gpuemu_engine::case::given::given;
use gpuemu_engine::oracle::judge_given;
use gpuemu_engine::schema::Parameters;
use gpuemu_engine::verdict::Outcome;
use gpuemu_engine::{Subject, ops};
use gpuemu_tensor::{DType, Tensor};

fn points() -> Vec<f32> {
    (-6000i16..=6000).map(|step| f32::from(step) / 1000.0 * 1.7).collect()
}

/// erfc of a float32 that is off by so many units in the last place.
fn erfc(x: f32, ulps: i32) -> f32 {
    let right = libm::erfc(f64::from(x)) as f32;
    f32::from_bits(right.to_bits().saturating_add_signed(if right == 0.0 { 0 } else { ulps }))
}

fn judged(op: &str, inputs: &[(&str, &[f32])], output: &[f32]) -> Outcome {
    let subject = Subject::new(ops::find(op).unwrap());
    let schema = subject.schema();
    let mut parameters = Parameters::default();
    schema.parameters.iter().for_each(|spec| parameters.set(&spec.name, spec.default));
    let tensor = |values: &[f32]| {
        let values: Vec<f64> = values.iter().copied().map(f64::from).collect();
        Tensor::from_f64(DType::F32, vec![values.len()], &values).unwrap()
    };
    let inputs = inputs.iter().map(|(name, values)| (name.to_string(), tensor(values))).collect();
    let wanted = [schema.outputs[0].name.clone()];
    let case = given(schema, subject.fingerprint(), 1, inputs, &parameters, &wanted).unwrap();
    judge_given(&subject, &case, &[tensor(output)]).outcome
}

#[test]
fn gelu_by_an_erfc_of_four_ulps_is_right_and_one_of_sixteen_is_not() {
    let points = points();
    let by_erfc = |ulps: i32| -> Vec<f32> {
        points.iter().map(|x| 0.5 * x * erfc(-x * std::f32::consts::FRAC_1_SQRT_2, ulps)).collect()
    };
    for (ulps, outcome) in [(-4, Outcome::Passed), (4, Outcome::Passed), (-16, Outcome::Failed), (16, Outcome::Failed)]
    {
        assert_eq!(judged("gelu", &[("input", &points)], &by_erfc(ulps)), outcome, "{ulps} ulp");
    }
}

#[test]
fn the_gradient_of_gelu_by_an_erfc_of_four_ulps_is_right() {
    let points = points();
    let upstream: Vec<f32> = points.iter().map(|x| 1.0 + x.abs()).collect();
    for ulps in [-4, 4] {
        let slope = |x: f32| {
            let below = 0.5 * erfc(-x * std::f32::consts::FRAC_1_SQRT_2, ulps);
            below + x * (0.398_942_3 * (-0.5 * x * x).exp())
        };
        let gradient: Vec<f32> = points.iter().zip(&upstream).map(|(x, dy)| dy * slope(*x)).collect();
        let inputs: [(&str, &[f32]); 2] = [("grad_output", &upstream), ("input", &points)];
        assert_eq!(judged("gelu_backward", &inputs, &gradient), Outcome::Passed, "{ulps} ulp");
    }
}
