//! Results to be stored: as large and as varied as real ones.

use gpuemu_store::{ResultRecord, StoredOutcome};

/// A result that passed.
pub fn record(project: &str, run: u64, op: &str, index: u64) -> ResultRecord {
    ResultRecord {
        project: project.to_string(),
        run,
        op: op.to_string(),
        index,
        seed: run.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ index,
        dtype: "float32".to_string(),
        sizes: format!("...=3x8 H={index}"),
        layout: "input:row_gap".to_string(),
        strategy: "sparse".to_string(),
        outcome: StoredOutcome::Passed,
        check: String::new(),
        largest_share: 0.25,
        max_abs: 1e-7,
        max_rel: 1e-6,
        max_ulp: 0.5,
        runner: "module kernels".to_string(),
        base_seed: 7,
        descriptor: "{}".to_string(),
        time: 1_800_000_000_000 + index,
    }
}
