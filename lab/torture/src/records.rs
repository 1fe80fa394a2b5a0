//! Results to be stored: as large and as varied as real ones.

use gpuemu_model::CaseDescriptor;
use gpuemu_model::finding::LargestErrors;
use gpuemu_model::report::ValidationResult;
use gpuemu_store::ResultRecord;
use gpuemu_tensor::{DType, Layout};

/// A result that passed.
pub fn record(project: &str, run: u64, op: &str, index: u64) -> ResultRecord {
    let mut case = CaseDescriptor::of(op, DType::F32, run.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ index);
    case.sizes.batch = vec![3, 8];
    case.sizes.set("H", index as usize);
    case.layouts.push(("input".to_string(), Layout::RowGap));
    let result = ValidationResult {
        largest: LargestErrors { max_abs_diff: 1e-7, max_rel_diff: 1e-6, max_ulp_diff: 0.5, tolerance_share: 0.25 },
        runner: "module kernels".to_string(),
        time: 1_800_000_000_000 + index,
        ..ValidationResult::of(case)
    };
    ResultRecord::of(&result, project, run, index, 7)
}
