//! Inputs that somebody else made: every op tells its sizes from them.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests fail by panicking")]

use std::panic::AssertUnwindSafe;

use gpuemu_engine::case::given::given;
use gpuemu_engine::case::materialise;
use gpuemu_engine::ops::{builtin, check_domains};
use gpuemu_engine::schema::Scalar;
use gpuemu_engine::{Sampler, Subject};
use gpuemu_tensor::rng::case_seed;

#[test]
fn the_sizes_of_every_op_are_told_from_its_inputs() {
    let mut wrong = Vec::new();
    for op in builtin() {
        let subject = Subject::new(op.clone());
        let schema = subject.schema();
        let sampler = Sampler { budget: 2_000, ..Sampler::default() };
        for index in 0..40 {
            let descriptor = subject.describe(&sampler, case_seed(7, index));
            let case = materialise(schema, &descriptor).unwrap();
            // Some sizes cannot be told from what is empty.
            if case.inputs.iter().flatten().any(|tensor| tensor.is_empty()) {
                continue;
            }
            check_domains(schema, &case).unwrap_or_else(|error| panic!("{}: {error}", schema.name));
            let inputs = schema.inputs.iter().zip(&case.inputs);
            let named = inputs.filter_map(|(spec, tensor)| Some((spec.name.clone(), tensor.clone()?))).collect();
            let found = given(schema, "", 0, named, &descriptor.parameters, &descriptor.present);
            match found {
                Ok(found) if found.descriptor.sizes == descriptor.sizes => {}
                Ok(found) => {
                    wrong.push(format!("{}: {} for {}", schema.name, found.descriptor.sizes, descriptor.sizes))
                }
                Err(error) => wrong.push(format!("{}: {error} ({})", schema.name, descriptor.sizes)),
            }
        }
    }
    wrong.dedup_by_key(|text| text.split(':').next().unwrap_or_default().to_string());
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Parameters that somebody may pass by mistake.
const ODD: [Scalar; 10] = [
    Scalar::Int(-1),
    Scalar::Int(0),
    Scalar::Int(1),
    Scalar::Int(3),
    Scalar::Int(1 << 20),
    Scalar::Int(i64::MAX),
    Scalar::Int(i64::MIN),
    Scalar::Float(0.0),
    Scalar::Float(-2.5),
    Scalar::Float(1e300),
];

#[test]
fn odd_parameters_are_refused_or_judged_and_never_a_panic() {
    let mut panicked = Vec::new();
    for op in builtin() {
        let subject = Subject::new(op.clone());
        let schema = subject.schema();
        let sampler = Sampler { budget: 500, ..Sampler::default() };
        for index in 0..3 {
            let descriptor = subject.describe(&sampler, case_seed(11, index));
            let case = materialise(schema, &descriptor).unwrap();
            for (spec, odd) in schema.parameters.iter().flat_map(|spec| ODD.map(|odd| (spec, odd))) {
                if std::mem::discriminant(&spec.default) != std::mem::discriminant(&odd) {
                    continue;
                }
                let mut parameters = descriptor.parameters.clone();
                parameters.set(&spec.name, odd);
                let inputs = schema.inputs.iter().zip(&case.inputs);
                let named = inputs.filter_map(|(spec, tensor)| Some((spec.name.clone(), tensor.clone()?))).collect();
                let judged = std::panic::catch_unwind(AssertUnwindSafe(|| {
                    let case = given(schema, "", 0, named, &parameters, &descriptor.present).ok()?;
                    // As a client's request is: refused where an input leaves its domain.
                    check_domains(schema, &case).ok()?;
                    subject.expect(&case).ok()
                }));
                if judged.is_err() {
                    panicked.push(format!("{} with {} = {odd} and {}", schema.name, spec.name, descriptor.sizes));
                }
            }
        }
    }
    assert!(panicked.is_empty(), "{}", panicked.join("\n"));
}
