//! Stored results and failures.

use gpuemu_config::failure::Failure;
use gpuemu_engine::CaseDescriptor;
use gpuemu_model::error_code::ErrorCode;
use gpuemu_model::finding::{ElementCounts, Outcome};
use gpuemu_model::json::{FromJson, ToJson};
use gpuemu_model::report::{OpReport, RunReport, StoredRun, ValidationResult};
use gpuemu_model::tensor_data::{NamedTensorData, TensorData};
use gpuemu_process::fault;
use gpuemu_run::project::Project;
use gpuemu_run::result::{now, replay_line};
use gpuemu_store::results::{outcome_of, stored_runner};
use gpuemu_store::{FailureRecord, ResultQuery, ResultRecord, RunRecord};
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
        Ok(Response::Results { results: records.iter().map(stored_result).collect::<Result<_, _>>()? })
    }

    pub(super) fn list_failures(&self, request: &ListResults) -> Result<Response, Failure> {
        let project = self.project(&request.project)?;
        let records = self.store.failures(&project.key, &query(request)?)?;
        Ok(Response::Results { results: records.iter().map(stored_failure).collect::<Result<_, _>>()? })
    }

    pub(super) fn list_runs(&self, request: &ListRuns) -> Result<Response, Failure> {
        let project = self.project(&request.project)?;
        let limit = request.limit.unwrap_or(1).min(MOST_RUNS) as usize;
        let records = self.store.runs(&project.key, request.op_name.as_deref(), limit)?;
        Ok(Response::Runs { runs: records.iter().map(stored_run).collect::<Result<_, _>>()? })
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
            let text = run.to_json().map_err(|error| {
                Failure::new(ErrorCode::InternalError, format!("run {} cannot be kept: {error}", report.run))
            })?;
            let (project, op) = (project.key.clone(), run.op.op);
            Ok(RunRecord { project, op, run: report.run, time: report.time, report: text })
        });
        Ok(self.store.put_runs(&records.collect::<Result<Vec<_>, Failure>>()?)?)
    }

    pub(super) fn get_result(&self, request: &GetResult) -> Result<Response, Failure> {
        let project = self.project(&request.project)?;
        let query =
            ResultQuery { op: request.op_name.clone(), seed: Some(request.seed), limit: 1, ..ResultQuery::default() };
        if let Some(failure) = self.store.failures(&project.key, &query)?.first() {
            return Ok(Response::ValidationResult { result: Box::new(with_inputs(failure)?) });
        }
        match self.store.results(&project.key, &query)?.first() {
            Some(record) => Ok(Response::ValidationResult { result: Box::new(stored_result(record)?) }),
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

/// What was kept of an op in a run.
pub(super) fn stored_run(record: &RunRecord) -> Result<StoredRun, Failure> {
    let read = StoredRun::from_json(record.report.as_bytes()).map_err(|error| error.to_string());
    fault!("records.run", "injected".to_string(), read).map_err(|error| {
        let message = format!("what was kept of run {} of op '{}' cannot be read: {error}", record.run, record.op);
        Failure::new(ErrorCode::InternalError, message)
    })
}

/// A failure as it was reported; what was kept of it if that cannot be read.
pub(super) fn stored_failure(record: &FailureRecord) -> Result<ValidationResult, Failure> {
    ValidationResult::from_json(record.verdict.as_bytes()).or_else(|_| stored_result(&record.result))
}

/// A stored failure with its inputs, as far as they are kept.
pub(super) fn with_inputs(failure: &FailureRecord) -> Result<ValidationResult, Failure> {
    let mut result = stored_failure(failure)?;
    let mut inputs = NamedTensorData::default();
    for (name, tensor) in failure.snapshot.tensors()? {
        inputs.0.push((name, TensorData::base64_as_it_lies(&tensor)));
    }
    result.inputs = (!inputs.0.is_empty()).then_some(inputs);
    Ok(result)
}

/// A result from what is kept of each case.
pub(super) fn stored_result(record: &ResultRecord) -> Result<ValidationResult, Failure> {
    fault!("records.result", Failure::new(ErrorCode::InternalError, "injected"), Ok(()))?;
    let outcome = outcome_of(record.outcome);
    let (runner, client_side) = stored_runner(record);
    Ok(ValidationResult {
        op: record.op.clone(),
        outcome,
        passed: outcome == Outcome::Passed,
        seed: record.seed,
        dtype: record.parsed_dtype()?,
        sizes: record.sizes.clone(),
        shapes: Vec::new(),
        layout: record.layout.clone(),
        values: record.strategy.clone(),
        parameters: CaseDescriptor::from_json(record.descriptor.as_bytes())
            .map_or(String::new(), |descriptor| descriptor.parameters.to_string()),
        failures: Vec::new(),
        message: None,
        warnings: Vec::new(),
        max_abs_diff: record.max_abs,
        max_rel_diff: record.max_rel,
        max_ulp_diff: record.max_ulp,
        tolerance_share: record.largest_share,
        tolerance: String::new(),
        elements: ElementCounts::default(),
        runner: runner.to_string(),
        not_checked: Vec::new(),
        case: serde_json::from_str(&record.descriptor).unwrap_or_default(),
        failing_case: None,
        run: Some(record.run),
        time: record.time,
        minimized: false,
        client_side,
        settings: Default::default(),
        inputs: None,
        replay: match client_side {
            // The client's own words are kept with failures only.
            true => format!("the client that judged '{}', with seed {}", record.op, record.seed),
            false => replay_line(&record.op, record.seed, &Default::default()),
        },
    })
}
