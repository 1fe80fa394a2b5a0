//! The references against the stand-ins in float64: two formulas written apart from each other.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests fail by panicking")]

use gpuemu_corpus::implementations::families;
use gpuemu_corpus::stand_in::StandIn;
use gpuemu_engine::case::{Strategy, materialise};
use gpuemu_engine::oracle::{Subject, judge};
use gpuemu_engine::{Sampler, ops};
use gpuemu_tensor::DType;
use gpuemu_tensor::rng::case_seed;

#[test]
fn references_and_stand_ins_agree_in_float64() {
    for family in families() {
        for implementation in &family.implementations {
            // Declared roundings (of P, say) are part of a kernel, not of its formula.
            let style = gpuemu_corpus::style::Style { intermediate: None, ..implementation.style };
            let stand_in = StandIn::new(family.op, implementation.kernel, style, None);
            let subject = Subject::new(ops::find(family.op).unwrap()).precision(style.precision());
            for strategy in [Strategy::Regular, Strategy::Shifted, Strategy::Special] {
                let sampler = Sampler { strategy, dtypes: vec![DType::F32], budget: 4_000, ..Sampler::default() };
                for index in 0..40 {
                    let descriptor = subject.describe(&sampler, case_seed(3, index));
                    let case = materialise(subject.schema(), &descriptor).unwrap();
                    let expected = subject.expect(&case).unwrap();
                    let evaluated = stand_in.evaluate(&subject, &case).unwrap();
                    for (expectation, values) in expected.iter().zip(&evaluated) {
                        compare(family.op, expectation, values, &descriptor.to_owned());
                    }
                }
            }
        }
    }
}

fn compare(
    op: &str,
    expectation: &gpuemu_engine::ops::Expectation,
    values: &[f64],
    descriptor: &gpuemu_engine::CaseDescriptor,
) {
    let excused: Vec<usize> = expectation.excuses.iter().map(|excuse| excuse.index).collect();
    for (index, (y, value)) in expectation.values.iter().zip(values).enumerate() {
        if excused.binary_search(&index).is_ok() || (y.is_nan() && value.is_nan()) || y == value {
            continue;
        }
        // δ is for float32: its share of 2^-29 is what float64 may lose by the same steps.
        let allowed = expectation.delta[index] * 2f64.powi(-26) + 1e-15 * y.abs() + 1e-300;
        assert!(
            (y - value).abs() <= allowed,
            "{op} at {index}: {y:e} and {value:e}, δ {:e}, {descriptor:?}",
            expectation.delta[index]
        );
    }
}

#[test]
fn float64_kernels_pass_and_their_mutants_do_not() {
    for family in families() {
        let implementation = family.implementations[0];
        let precision = gpuemu_engine::schema::Precision { order: None, ..implementation.style.precision() };
        let subject = Subject::new(ops::find(family.op).unwrap()).precision(precision);
        // Whole numbers and what is always float32 cannot show such a factor.
        let schema = subject.schema();
        if !schema.dtypes.contains(&DType::F64) || schema.outputs.iter().all(|output| output.dtype.is_some()) {
            continue;
        }
        let sampler = Sampler { dtypes: vec![DType::F64], budget: 3_000, ..Sampler::default() };
        let mut right = StandIn::new(family.op, implementation.kernel, implementation.style, None);
        let wrong = gpuemu_corpus::mutation::Mutation::ScaleOutput(1.0 + 1e-9);
        let mut wrong = StandIn::new(family.op, implementation.kernel, implementation.style, Some(wrong));
        let mut caught = 0;
        for index in 0..60 {
            let case = materialise(subject.schema(), &subject.describe(&sampler, case_seed(9, index))).unwrap();
            let verdict = judge(&subject, &case, &mut right);
            assert!(!verdict.failed(), "{}: {:?} {:?}", family.op, verdict.failures, verdict.case);
            caught += usize::from(judge(&subject, &case, &mut wrong).failed());
        }
        // Indices and flags have no room for so small a factor.
        let real = subject.schema().outputs.iter().any(|spec| spec.dtype.is_none_or(DType::is_float));
        assert!(caught > 10 || !real, "{}: a factor of 1 + 1e-9 was caught in {caught} of 60 cases", family.op);
    }
}
