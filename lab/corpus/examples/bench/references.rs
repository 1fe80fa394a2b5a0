//! The references of the largest ops, values and bounds together, beside NumPy's float64 values alone.

use std::hint::black_box;

use gpuemu_engine::case::{Case, Layout, Strategy, materialise};
use gpuemu_engine::oracle::Subject;
use gpuemu_engine::{Sampler, ops};
use gpuemu_tensor::DType;

use crate::numpy;
use crate::row::Row;
use crate::timing::median_seconds;

const REPEATS: usize = 5;

/// The rows of this group.
pub fn rows() -> Vec<Row> {
    let side = 1024;
    let matmul = [("M", side), ("K", side), ("N", side)];
    let setup = format!("a, b = np.random.default_rng(1).random((2, {side}, {side}))");
    let product = numpy::median_seconds(&setup, "a @ b", REPEATS);
    let attention = [("B", 4), ("H", 8), ("G", 1), ("M", 512), ("N", 512), ("D", 64)];
    let setup = "q, k, v = np.random.default_rng(1).random((3, 4, 8, 512, 64))";
    let statement = "s = q @ k.swapaxes(-1, -2) * 0.125; e = np.exp(s - s.max(-1, keepdims=True)); \
                     e /= e.sum(-1, keepdims=True); e @ v";
    let weighted = numpy::median_seconds(setup, statement, REPEATS);
    vec![
        row("matmul", &matmul, "reference of matmul 1024x1024x1024", product),
        row("attention", &attention, "reference of attention 4x8x512x64", weighted),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn row(op: &str, sizes: &[(&str, usize)], name: &str, peer: Option<f64>) -> Option<Row> {
    let subject = Subject::new(ops::find(op)?);
    let case = case(&subject, sizes)?;
    let seconds = median_seconds(REPEATS, || {
        black_box(subject.expect(black_box(&case)).is_ok());
    });
    Some(Row::time(name, seconds, peer, "NumPy, float64, values alone", "values and bounds; aim 1 / 1.5"))
}

fn case(subject: &Subject, sizes: &[(&str, usize)]) -> Option<Case> {
    let sampler = Sampler {
        dtypes: vec![DType::F32],
        layouts: vec![Layout::Contiguous],
        strategy: Strategy::Regular,
        shapes: vec![sizes.iter().map(|(name, size)| (name.to_string(), *size)).collect()],
        absent: vec!["mask".to_string(), "lse".to_string()],
        parameters: gpuemu_engine::schema::Parameters(
            subject.schema().parameters.iter().map(|spec| (spec.name.clone(), spec.default)).collect(),
        ),
        ..Sampler::default()
    };
    materialise(subject.schema(), &subject.describe(&sampler, 1)).ok()
}
