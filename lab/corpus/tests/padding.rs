//! A bias far below one ulp: a softmax of width 1025 whose padding to 1152 enters the denominator.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests fail by panicking")]

use gpuemu_corpus::kernels::all;
use gpuemu_corpus::mutation::Mutation;
use gpuemu_corpus::stand_in::StandIn;
use gpuemu_corpus::style::Style;
use gpuemu_engine::case::values::Recipe;
use gpuemu_engine::case::{CaseDescriptor, GENERATOR_VERSION, Strategy, materialise_with};
use gpuemu_engine::ops;
use gpuemu_engine::oracle::{Subject, judge};
use gpuemu_engine::schema::{Parameters, Precision, Sizes};
use gpuemu_tensor::DType;
use gpuemu_tensor::rng::case_seed;

const SEEDS: u64 = 60;

fn subject(precision: Precision) -> Subject {
    Subject::new(ops::find("softmax").unwrap()).precision(precision)
}

fn caught(subject: &Subject, mutation: Option<Mutation>, rows: usize, dtype: DType) -> u64 {
    let mut runner = StandIn::new("softmax", all::SOFTMAX, Style::TRITON, mutation);
    let ten = Recipe::Uniform { low: -10.0, width: 20.0 };
    (0..SEEDS)
        .filter(|index| {
            let descriptor = CaseDescriptor {
                generator: GENERATOR_VERSION,
                op: "softmax".to_string(),
                schema: subject.fingerprint().to_string(),
                seed: case_seed(1152, *index),
                dtype,
                sizes: Sizes { batch: vec![rows], named: vec![("H".to_string(), 1025)] },
                layouts: Vec::new(),
                values: Strategy::Default,
                parameters: Parameters::default(),
                present: Vec::new(),
            };
            let case = materialise_with(subject.schema(), &descriptor, &ten).unwrap();
            let verdict = judge(subject, &case, &mut runner);
            // The case itself must show it, not an escalated one.
            verdict.failed() && verdict.failing_case.is_none()
        })
        .count() as u64
}

#[test]
fn float16_shows_it_in_one_row() {
    let any_order = subject(Precision::default());
    assert_eq!(caught(&any_order, Some(Mutation::PadZero(128)), 1, DType::F16), SEEDS);
}

#[test]
fn bfloat16_shows_it_in_four_rows() {
    let any_order = subject(Precision::default());
    assert_eq!(caught(&any_order, Some(Mutation::PadZero(128)), 4, DType::BF16), SEEDS);
    let declared = subject(Style::TRITON.precision());
    assert_eq!(caught(&declared, Some(Mutation::PadZero(128)), 1, DType::BF16), SEEDS);
}

#[test]
fn a_right_softmax_of_that_width_passes() {
    let declared = subject(Style::TRITON.precision());
    for dtype in [DType::F32, DType::F16, DType::BF16] {
        assert_eq!(caught(&declared, None, 4, dtype), 0);
    }
}
