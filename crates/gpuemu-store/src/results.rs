//! Results of cases as the store keeps them.

use gpuemu_model::finding::Outcome;
use gpuemu_model::report::ValidationResult;

use crate::{ResultRecord, StoredOutcome};

/// What the runner of a stored result begins with, where a client ran it in its own process.
const CLIENT_SIDE: &str = "client side: ";

/// The runner of a stored result, and whether a client ran it in its own process.
pub fn stored_runner(record: &ResultRecord) -> (&str, bool) {
    let inner = record.runner.strip_prefix(CLIENT_SIDE);
    (inner.unwrap_or(&record.runner), inner.is_some())
}

/// A result as the store keeps it.
pub fn record_of(result: &ValidationResult, project: &str, run: u64, index: u64, base_seed: u64) -> ResultRecord {
    ResultRecord {
        project: project.to_string(),
        run,
        op: result.op.clone(),
        index,
        seed: result.seed,
        dtype: result.dtype.to_string(),
        sizes: result.sizes.clone(),
        layout: result.layout.clone(),
        strategy: result.values.clone(),
        outcome: stored(result.outcome),
        check: result.finding().map_or(String::new(), |finding| finding.check.to_string()),
        largest_share: result.tolerance_share,
        max_abs: result.max_abs_diff,
        max_rel: result.max_rel_diff,
        max_ulp: result.max_ulp_diff,
        runner: format!("{}{}", if result.client_side { CLIENT_SIDE } else { "" }, result.runner),
        base_seed,
        descriptor: result.case.to_string(),
        time: result.time,
    }
}

fn stored(outcome: Outcome) -> StoredOutcome {
    match outcome {
        Outcome::Passed => StoredOutcome::Passed,
        Outcome::Failed => StoredOutcome::Failed,
        Outcome::Undetermined => StoredOutcome::Undetermined,
        Outcome::Error => StoredOutcome::Error,
    }
}

/// An outcome as reports have it.
pub fn outcome_of(stored: StoredOutcome) -> Outcome {
    match stored {
        StoredOutcome::Passed => Outcome::Passed,
        StoredOutcome::Failed => Outcome::Failed,
        StoredOutcome::Undetermined => Outcome::Undetermined,
        StoredOutcome::Error => Outcome::Error,
    }
}
