//! Generating uniform float32 tensors, beside NumPy's Generator and the write bandwidth.

use std::hint::black_box;

use gpuemu_engine::case::fill::fill_into;
use gpuemu_engine::case::values::Recipe;
use gpuemu_tensor::DType;

use crate::row::Row;
use crate::timing::median_seconds;
use crate::{bandwidth, numpy};

const ELEMENTS: usize = 1 << 26;

/// The rows of this group.
pub fn rows() -> Vec<Row> {
    let mut bytes = vec![0u8; ELEMENTS * 4];
    let recipe = Recipe::Uniform { low: 0.0, width: 1.0 };
    let mut seed = 0;
    let seconds = median_seconds(7, || {
        seed += 1;
        fill_into(DType::F32, &recipe, seed, "input", black_box(&mut bytes));
    });
    let setup = format!("generator = np.random.default_rng(1)\nout = np.empty({ELEMENTS}, dtype=np.float32)");
    let peer = numpy::median_seconds(&setup, "generator.random(dtype=np.float32, out=out)", 3);
    let name = "generate uniform float32, 2^26 elements";
    let rate = (ELEMENTS * 4) as f64 / seconds / 1e9;
    vec![
        Row::time(name, seconds, peer, "numpy.random.Generator", "aim 5 times"),
        Row::rate(name, "GB/s", rate, Some(bandwidth::write()), "write bandwidth, all threads", "aim 0.6"),
    ]
}
