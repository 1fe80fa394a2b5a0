//! Results that are on the disk, in groups and one by one.

use std::time::Instant;

use gpuemu_model::CaseDescriptor;
use gpuemu_model::case::Scalar;
use gpuemu_model::finding::LargestErrors;
use gpuemu_model::report::ValidationResult;
use gpuemu_store::{ResultRecord, Store};
use gpuemu_tensor::{DType, Layout};

use crate::row::Row;

/// The rows of this group.
pub fn rows() -> Vec<Row> {
    let Ok(folder) = tempfile::tempdir() else { return Vec::new() };
    let store = match Store::open(&folder.path().join("store.redb")) {
        Ok(store) => store,
        Err(error) => {
            eprintln!("no store: {error}");
            return Vec::new();
        }
    };
    let (Some(groups), single) = (rate(&store, 200, 1000), rate(&store, 300, 1)) else { return Vec::new() };
    let note = "1,000 results a group, each with its case of about 400 bytes; aim 50,000";
    vec![Row::rate("durable results in groups", "1/s", groups, single, "one result a time, each durable", note)]
}

/// Results a second where so many are stored together.
fn rate(store: &Store, groups: u64, size: u64) -> Option<f64> {
    let start = Instant::now();
    for _ in 0..groups {
        let run = store.next_run();
        let records: Vec<ResultRecord> = (0..size).map(|index| record(run, index)).collect();
        store.append(&records, &[]).ok()?;
    }
    Some((groups * size) as f64 / start.elapsed().as_secs_f64())
}

fn record(run: u64, index: u64) -> ResultRecord {
    let mut case = CaseDescriptor::of("softmax", DType::F32, run ^ index);
    (case.generator, case.schema) = (1, "0123456789abcdef".to_string());
    case.sizes.batch = vec![3, 8];
    case.sizes.set("H", index as usize);
    case.layouts.push(("input".to_string(), Layout::RowGap));
    case.parameters.set("scale", Scalar::Float(0.125));
    case.present.push("mask".to_string());
    let result = ValidationResult {
        largest: LargestErrors { max_abs_diff: 1e-7, max_rel_diff: 1e-6, max_ulp_diff: 0.5, tolerance_share: 0.25 },
        runner: "module softmax".to_string(),
        time: run / 1000,
        ..ValidationResult::of(case)
    };
    ResultRecord::of(&result, "/home/somebody/kernels", run, index, 7)
}
