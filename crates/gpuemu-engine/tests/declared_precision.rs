//! What a kernel declares is allowed to it, and to nobody else.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests fail by panicking")]

use gpuemu_engine::case::given::given;
use gpuemu_engine::oracle::judge_given;
use gpuemu_engine::schema::{Parameters, Precision};
use gpuemu_engine::verdict::Outcome;
use gpuemu_engine::{Subject, ops};
use gpuemu_tensor::{DType, Tensor};

/// The outcome of one output for given inputs, with and without a declaration.
fn outcomes(
    op: &str,
    dtype: DType,
    inputs: &[(&str, Vec<usize>, Vec<f64>)],
    output: &[f64],
    declared: Precision,
) -> [Outcome; 2] {
    [declared, Precision::default()].map(|precision| {
        let subject = Subject::new(ops::find(op).unwrap()).precision(precision);
        let tensors = inputs.iter().map(|(name, shape, values)| {
            let dtype = if *name == "target" { DType::I64 } else { dtype };
            (name.to_string(), Tensor::from_f64(dtype, shape.clone(), values).unwrap())
        });
        let schema = subject.schema();
        let mut parameters = Parameters::default();
        schema.parameters.iter().for_each(|spec| parameters.set(&spec.name, spec.default));
        let wanted = [schema.outputs[0].name.clone()];
        let case = given(schema, subject.fingerprint(), 1, tensors.collect(), &parameters, &wanted).unwrap();
        let spec = &schema.outputs[0];
        let shape = spec.shape(&case.descriptor.sizes).unwrap();
        let output = Tensor::from_f64(spec.dtype_in(dtype), shape, output).unwrap();
        judge_given(&subject, &case, &[output]).outcome
    })
}

#[test]
fn a_flushed_input_beside_a_large_one_is_lost_only_where_flushing_is_declared() {
    let flushing = Precision { flush_to_zero: true, ..Precision::default() };
    // Of the left matrix, of the right one, and of both.
    for (a, b) in [([1e-39, 2.0], [1e38, 3.0]), ([1e38, 2.0], [1e-39, 3.0])] {
        let inputs = [("a", vec![1, 2], a.to_vec()), ("b", vec![2, 1], b.to_vec())];
        let found = outcomes("matmul", DType::F32, &inputs, &[6.0], flushing.clone());
        assert_eq!(found, [Outcome::Passed, Outcome::Failed]);
    }
    let both = [("a", vec![1, 3], vec![1e-39, 1e38, 2.0]), ("b", vec![3, 1], vec![1e38, 1e-39, 3.0])];
    assert_eq!(outcomes("matmul", DType::F32, &both, &[6.0], flushing), [Outcome::Passed, Outcome::Failed]);
}

#[test]
fn a_short_erf_is_off_only_where_it_is_declared() {
    let short = Precision { fast_erf: true, ..Precision::default() };
    // gelu of the float32 next to -2.7.
    let (x, exact) = (-2.700000047683716, -0.009360828091874055);
    let inputs = [("input", vec![1], vec![x])];
    let off = [exact + 7e-7];
    assert_eq!(outcomes("gelu", DType::F32, &inputs, &off, short.clone()), [Outcome::Passed, Outcome::Failed]);
    let infinite = [("input", vec![1], vec![f64::INFINITY])];
    assert_eq!(outcomes("gelu", DType::F32, &infinite, &[f64::NAN], short), [Outcome::Passed, Outcome::Failed]);
}

#[test]
fn intermediates_are_rounded_only_where_that_is_declared() {
    let rounded = Precision { intermediate: Some(DType::BF16), ..Precision::default() };
    let inputs = [("input", vec![1, 2], vec![1.0, 0.0]), ("target", vec![1], vec![0.0])];
    // ln(1 + 1/e) is 0.3133; 0.3154 is one place of bfloat16 further.
    let off = [0.315_429_687_5];
    assert_eq!(
        outcomes("cross_entropy", DType::BF16, &inputs, &off, rounded.clone()),
        [Outcome::Passed, Outcome::Failed]
    );
    let far = [0.34];
    assert_eq!(outcomes("cross_entropy", DType::BF16, &inputs, &far, rounded.clone())[0], Outcome::Failed);
    let inputs = [("input", vec![1, 2], vec![1.0, 0.0])];
    // 0.7311 and 0.2689 are right; each is given one place of bfloat16 off.
    let off = [0.734_375, 0.269_531_25];
    assert_eq!(outcomes("softmax", DType::BF16, &inputs, &off, rounded), [Outcome::Passed, Outcome::Failed]);
}
