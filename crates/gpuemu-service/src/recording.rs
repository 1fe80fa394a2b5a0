//! Keeping verdicts that clients reached in their own processes: nothing that they say is believed unchecked.

use std::sync::{Mutex, MutexGuard, PoisonError};

use gpuemu_config::failure::Failure;
use gpuemu_model::error_code::ErrorCode;
use gpuemu_model::finding::Outcome;
use gpuemu_model::report::ValidationResult;
use gpuemu_run::project::Project;
use gpuemu_run::result::now;
use gpuemu_store::{FailureRecord, ResultRecord, Snapshot};
use gpuemu_wire::protocol::{RecordResults, Response};

use super::{Service, read_tensors};

/// Bytes of an op's name at most.
const LONGEST_NAME: usize = 200;

/// Keeps two batches of one run from taking the same numbers for their cases. Runs share few locks: batches of
/// different runs are still written together.
#[derive(Debug, Default)]
pub(super) struct Locks([Mutex<()>; 16]);

impl Locks {
    fn of_run(&self, run: u64) -> MutexGuard<'_, ()> {
        self.0[(run % self.0.len() as u64) as usize].lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Service {
    /// Keeps results of a client, together or not at all.
    pub(super) fn record_results(&self, request: RecordResults, payload: &[u8]) -> Result<Response, Failure> {
        check_name(&request.op_name)?;
        if request.results.is_empty() {
            return Err(Failure::invalid("'results' is empty: there is nothing to keep"));
        }
        for result in &request.results {
            check(result, &request.op_name)?;
        }
        let project = self.project(&request.project)?;
        let run = match request.run {
            None => self.store.next_run(),
            Some(run) => self.recorded_run(&project, run)?,
        };
        let _one_at_a_time = self.recordings.of_run(run);
        let first = self.store.next_index(&project.key, run, &request.op_name)?;
        let time = now();
        let mut results = Vec::with_capacity(request.results.len());
        let mut failures = Vec::new();
        for (index, mut result) in (first..).zip(request.results) {
            result.complete_case();
            (result.run, result.time, result.client_side) = (Some(run), time, true);
            result.settings.clone_from(&request.settings);
            let inputs = result.inputs.take();
            let record = ResultRecord::of(&result, &project.key, run, index, request.base_seed);
            if result.outcome == Outcome::Failed {
                let inputs = inputs.map(|inputs| read_tensors(&inputs, payload)).transpose()?.unwrap_or_default();
                let snapshot = Snapshot::of(&inputs, project.config.storage.snapshot_bytes);
                failures.push(FailureRecord { result: record.clone(), snapshot });
            }
            results.push(record);
        }
        self.store.append(&results, &failures)?;
        Ok(Response::Recorded { run })
    }

    /// A run that a client may add to: one of its project that only clients recorded.
    fn recorded_run(&self, project: &Project, run: u64) -> Result<u64, Failure> {
        let hint = "leave 'run' out to begin a new one";
        match self.store.any_of_run(&project.key, run)? {
            Some(record) if record.result.client_side => Ok(run),
            Some(_) => Err(Failure::invalid(format!("run {run} was made by the daemon, not recorded")).hint(hint)),
            None => Err(Failure::new(ErrorCode::NotFound, format!("this project has no run {run}")).hint(hint)),
        }
    }

    /// The newest run of an op (below `before`, if given) that the daemon can run again, with its results.
    pub(super) fn last_own_run(
        &self,
        project: &Project,
        op: &str,
        mut before: Option<u64>,
    ) -> Result<Option<(u64, Vec<ResultRecord>)>, Failure> {
        while let Some(run) = self.store.last_run(&project.key, op, before)? {
            let results = self.store.run_results(&project.key, run, Some(op))?;
            if !results.iter().any(|result| result.result.client_side) {
                return Ok(Some((run, results)));
            }
            before = Some(run);
        }
        Ok(None)
    }
}

pub(super) fn check_name(name: &str) -> Result<(), Failure> {
    if let Some(problem) = gpuemu_model::name::problem(name) {
        return Err(Failure::invalid(format!("'op_name' {problem}")));
    }
    if name.len() > LONGEST_NAME {
        let length = name.len();
        return Err(Failure::invalid(format!("'op_name' has {length} bytes; at most {LONGEST_NAME} are possible")));
    }
    Ok(())
}

/// Refuses a verdict that contradicts itself.
pub(super) fn check(result: &ValidationResult, op: &str) -> Result<(), Failure> {
    let name = match result.outcome {
        Outcome::Passed => "passed",
        Outcome::Failed => "failed",
        Outcome::Undetermined => "undetermined",
        Outcome::Error => "error",
    };
    let wrong = if result.op != op {
        format!("'op' is '{}', but 'op_name' is '{op}'", result.op)
    } else if result.passed != (result.outcome == Outcome::Passed) {
        format!("'passed' is {}, but 'outcome' is '{name}'", result.passed)
    } else if result.outcome == Outcome::Failed && result.failures.is_empty() {
        "'outcome' is 'failed', but 'failures' is empty".to_string()
    } else if result.outcome == Outcome::Passed && !result.failures.is_empty() {
        format!("'outcome' is 'passed', but 'failures' has {} entries", result.failures.len())
    } else {
        return Ok(());
    };
    Err(Failure::invalid(format!("the result with seed {}: {wrong}", result.seed)))
}
