//! Whole cases on one core: drawn, generated, run, judged, with every check.

use gpuemu_corpus::kernels::all;
use gpuemu_corpus::stand_in::StandIn;
use gpuemu_corpus::style::Style;
use gpuemu_engine::case::materialise;
use gpuemu_engine::ops;
use gpuemu_engine::oracle::{Subject, judge};
use gpuemu_engine::schema::SummationOrder;
use gpuemu_engine::{Outcome, Sampler};
use gpuemu_tensor::DType;
use gpuemu_tensor::rng::case_seed;

use crate::row::Row;
use crate::timing::median_seconds;

const CASES: u64 = 2_000;

/// The rows of this group.
pub fn rows() -> Vec<Row> {
    let Some(op) = ops::find("matmul") else { return Vec::new() };
    let mut schema = op.schema().clone();
    schema.dimensions.iter_mut().for_each(|dimension| dimension.choices = vec![16]);
    let style = Style::TRITON.ordered(SummationOrder::Sequential);
    let subject = Subject::with_schema(op, schema).precision(style.precision());
    let sampler = Sampler { dtypes: vec![DType::F32], ..Sampler::default() };
    let mut runner = StandIn::new("matmul", all::MATMUL, style, None);
    let Ok(single) = rayon::ThreadPoolBuilder::new().num_threads(1).build() else { return Vec::new() };
    let mut base_seed = 0;
    let seconds = single.install(|| {
        median_seconds(5, || {
            base_seed += 1;
            for index in 0..CASES {
                let descriptor = subject.describe(&sampler, case_seed(base_seed, index));
                let Ok(case) = materialise(subject.schema(), &descriptor) else { continue };
                assert_ne!(judge(&subject, &case, &mut runner).outcome, Outcome::Failed);
            }
        })
    });
    let note = "M=N=K=16 float32, everything included, one core; aim 20,000";
    vec![Row::rate("matmul cases", "cases/s", CASES as f64 / seconds, None, "none", note)]
}
