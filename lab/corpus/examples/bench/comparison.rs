//! Comparing an output with its reference, beside `numpy.allclose` and the read bandwidth.

use std::hint::black_box;

use gpuemu_engine::ops::Expectation;
use gpuemu_engine::oracle::Tolerance;
use gpuemu_engine::oracle::compare::Rule;
use gpuemu_tensor::DType;
use gpuemu_tensor::tensor::encode_slice;

use crate::row::Row;
use crate::timing::median_seconds;
use crate::{bandwidth, numpy};

const ELEMENTS: usize = 1 << 26;

/// The rows of this group.
pub fn rows() -> Vec<Row> {
    let values: Vec<f64> = (0..ELEMENTS).map(|index| ((index % 10_007) as f64 - 5_000.0) * 1e-3).collect();
    let mut expectation = Expectation { delta: vec![1e-6; ELEMENTS], values, excuses: Vec::new() };
    let mut rows = Vec::new();
    for (dtype, cast) in [(DType::F32, "np.float32"), (DType::BF16, "ml_dtypes.bfloat16")] {
        let mut bytes = vec![0; ELEMENTS * dtype.size()];
        encode_slice(dtype, &expectation.values, &mut bytes);
        let pair = if dtype == DType::F32 { 1e-5 } else { 1e-2 };
        let fixed = Tolerance::Fixed { atol: pair, rtol: pair };
        let import = if dtype == DType::BF16 { "import ml_dtypes\n" } else { "" };
        let setup = format!(
            "{import}y = (np.arange({ELEMENTS}) % 10007 - 5000.0) * 1e-3\nout = y.astype(np.float32).astype({cast})"
        );
        let statement = format!("assert np.allclose(out, y, rtol={pair}, atol={pair})");
        let peer = numpy::median_seconds(&setup, &statement, 3);
        for (rule_name, tolerance, reads) in [("fixed tolerance", fixed, 8), ("bound, cell form", Tolerance::Bound, 16)]
        {
            let rule = Rule::new(dtype, tolerance);
            let seconds = median_seconds(7, || {
                assert_eq!(rule.compare(black_box(&bytes), black_box(&expectation)).mismatched, 0);
            });
            let name = format!("compare {dtype} with float64, 2^26 elements, {rule_name}");
            rows.push(Row::time(&name, seconds, peer, "numpy.allclose", "aim 20 times"));
            let rate = (ELEMENTS * (dtype.size() + reads)) as f64 / seconds / 1e9;
            let limit = bandwidth::read();
            rows.push(Row::rate(&name, "GB/s", rate, Some(limit), "read bandwidth, all threads", "aim 0.7"));
        }
    }
    expectation.values.clear();
    rows
}
