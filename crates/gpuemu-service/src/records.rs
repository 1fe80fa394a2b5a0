//! Stored results and failures.

use gpuemu_config::failure::Failure;
use gpuemu_model::error_code::ErrorCode;
use gpuemu_model::report::{OpReport, RunReport, StoredRun, ValidationResult};
use gpuemu_model::tensor_data::{NamedTensorData, TensorData};
use gpuemu_run::project::Project;
use gpuemu_run::result::now;
use gpuemu_store::{FailureRecord, ResultQuery, RunRecord};
use gpuemu_wire::protocol::{GetResult, ListResults, ListRuns, Response};

use super::Service;

/// Results that are listed where no number is given.
const DEFAULT_LIMIT: u64 = 100;

/// Runs of one op that an answer carries at most.
const MOST_RUNS: u64 = 1000;

/// Results that one answer carries at most.
const MOST_RESULTS: u64 = 100_000;

impl Service {
    pub(super) fn list_results(&self, request: &ListResults) -> Result<Response, Failure> {
        let project = self.project(&request.project)?;
        let records = self.store.results(&project.key, &query(request)?)?;
        Ok(Response::Results { results: records.into_iter().map(|record| record.result).collect() })
    }

    pub(super) fn list_failures(&self, request: &ListResults) -> Result<Response, Failure> {
        let project = self.project(&request.project)?;
        let records = self.store.failures(&project.key, &query(request)?)?;
        Ok(Response::Results { results: records.into_iter().map(|record| record.result.result).collect() })
    }

    pub(super) fn list_runs(&self, request: &ListRuns) -> Result<Response, Failure> {
        let project = self.project(&request.project)?;
        let limit = request.limit.unwrap_or(1).min(MOST_RUNS) as usize;
        let records = self.store.runs(&project.key, request.op_name.as_deref(), limit)?;
        Ok(Response::Runs { runs: records.into_iter().map(|record| record.run).collect() })
    }

    /// Keeps what the ops of a run came to. Failures and cases are kept by themselves.
    pub(super) fn keep_runs(&self, project: &Project, report: &RunReport) -> Result<(), Failure> {
        let records = report.ops.iter().map(|op| {
            let op = OpReport { failures: Vec::new(), case_results: Vec::new(), part: None, ..op.clone() };
            let run = StoredRun {
                gpuemu: report.gpuemu.clone(),
                run: report.run,
                time: report.time,
                mode: report.mode.clone(),
                seed: report.seed,
                settings: report.settings.clone(),
                shard: report.part.as_ref().map(|part| part.shard),
                config_digest: report.config_digest.clone(),
                op,
            };
            RunRecord { project: project.key.clone(), run }
        });
        Ok(self.store.put_runs(&records.collect::<Vec<_>>())?)
    }

    pub(super) fn get_result(&self, request: &GetResult) -> Result<Response, Failure> {
        let project = self.project(&request.project)?;
        let query =
            ResultQuery { op: request.op_name.clone(), seed: Some(request.seed), limit: 1, ..ResultQuery::default() };
        if let Some(failure) = self.store.failures(&project.key, &query)?.first() {
            return Ok(Response::ValidationResult { result: Box::new(with_inputs(failure)?) });
        }
        match self.store.results(&project.key, &query)?.pop() {
            Some(record) => Ok(Response::ValidationResult { result: Box::new(record.result) }),
            None => {
                let message = format!("no stored result of this project has seed {}", request.seed);
                Err(Failure::new(ErrorCode::NotFound, message))
            }
        }
    }
}

fn query(request: &ListResults) -> Result<ResultQuery, Failure> {
    let since = since(request.since_hours)?;
    let limit = request.limit.unwrap_or(DEFAULT_LIMIT).min(MOST_RESULTS) as usize;
    Ok(ResultQuery { op: request.op_name.clone(), since, limit, ..ResultQuery::default() })
}

/// The time (in milliseconds since 1970) that was so many hours ago.
pub(super) fn since(hours: Option<f64>) -> Result<Option<u64>, Failure> {
    match hours {
        None => Ok(None),
        Some(hours) if hours >= 0.0 => Ok(Some(now().saturating_sub((hours * 3_600_000.0) as u64))),
        Some(hours) => Err(Failure::invalid(format!("'since_hours' is {hours}; it must be 0 or more"))),
    }
}

/// A stored failure with its inputs, as far as they are kept.
pub(super) fn with_inputs(failure: &FailureRecord) -> Result<ValidationResult, Failure> {
    let mut result = failure.result.result.clone();
    let mut inputs = NamedTensorData::default();
    for (name, tensor) in failure.snapshot.tensors()? {
        inputs.0.push((name, TensorData::base64_as_it_lies(&tensor)));
    }
    result.inputs = (!inputs.0.is_empty()).then_some(inputs);
    Ok(result)
}
