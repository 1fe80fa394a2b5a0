//! Running a case again: as it was, shrunk, or with everything shown.

use gpuemu_config::failure::Failure;
use gpuemu_engine::case::materialise;
use gpuemu_engine::minimise::{Budget, MinimiseStrategy, minimise_case};
use gpuemu_engine::oracle::allowance::allowance;
use gpuemu_engine::oracle::judge::run_case;
use gpuemu_engine::runner::{Runner, RunnerDescription, RunnerKind};
use gpuemu_engine::{Case, CaseDescriptor, Verdict, judge};
use gpuemu_model::error_code::ErrorCode;
use gpuemu_model::finding::{Check, Outcome};
use gpuemu_model::report::ValidationResult;
use gpuemu_model::settings::{FuzzConfig, ProjectReference};
use gpuemu_model::tensor_data::{NamedTensorData, Payload, TensorData};
use gpuemu_process::fault;
use gpuemu_run::configured_op::{ConfiguredOp, StartedOp};
use gpuemu_run::project::Project;
use gpuemu_run::result::reference_failure;
use gpuemu_run::result::{Context, result_of};
use gpuemu_store::{FailureRecord, ResultQuery, ResultRecord, Snapshot};
use gpuemu_tensor::{DType, Tensor};
use gpuemu_wire::protocol::{
    Encoding, Inspection, InspectionStep, Minimize, Minimized, Neighbour, ReplayCase, ReplayFailures, Replayed,
    Response,
};

use super::validate::snapshot_of;
use super::{Service, write_tensors};
use crate::jobs::Job;

/// Failures that are looked at for one seed.
const FAILURES: usize = 1000;

/// A case that was found, and the op that it is a case of.
pub(super) struct Found {
    project: Project,
    pub(super) started: StartedOp,
    pub(super) case: Case,
    settings: FuzzConfig,
    notes: Vec<String>,
}

impl Found {
    pub(super) fn result(&self, verdict: Verdict) -> ValidationResult {
        let (op, warn_threshold) = (&self.started.op, self.project.config.policies.warn_threshold);
        let context = Context::new(&op.name, None, &self.settings, warn_threshold);
        let mut result = result_of(&op.subject, &self.case, verdict, context);
        result.warnings.extend(self.notes.iter().cloned());
        result
    }

    pub(super) fn judge(&mut self) -> Result<Verdict, Failure> {
        let StartedOp { op, runner } = &mut self.started;
        fault!("replay.judge");
        let verdict = judge(&op.subject, &self.case, runner);
        let failure = runner.error().map(|error| error.clone().into()).or_else(|| reference_failure(&verdict));
        failure.map_or(Ok(verdict), Err)
    }
}

impl Service {
    /// Runs a case again.
    pub(super) fn reproduce(&self, request: &ReplayCase) -> Result<Response, Failure> {
        let mut found = self.find_replayed(request)?;
        let verdict = found.judge()?;
        Ok(Response::ValidationResult { result: Box::new(found.result(verdict)) })
    }

    /// Runs a case again and returns every tensor of it.
    pub(super) fn inspect(&self, request: &ReplayCase) -> Result<Response, Failure> {
        let mut found = self.find_replayed(request)?;
        let verdict = found.judge()?;
        let StartedOp { op, runner } = &found.started;
        let steps = steps(&verdict, op, runner.description());
        let result = found.result(verdict);
        let StartedOp { op, runner } = &mut found.started;
        let mut case = found.case;
        if let Some(failing) = &result.failing_case {
            case = materialise(op.subject.schema(), failing).map_err(|error| Failure::invalid(error.to_string()))?;
        }
        let specs: Vec<_> =
            op.subject.schema().outputs.iter().filter(|spec| spec.is_in(&case.descriptor)).cloned().collect();
        let mut inspection = Inspection {
            result,
            steps,
            shown: case.descriptor.clone(),
            inputs: NamedTensorData::default(),
            parameters: runner.arguments(&case.descriptor.parameters),
            outputs: NamedTensorData::default(),
            expected: NamedTensorData::default(),
            allowed: NamedTensorData::default(),
            output_dtypes: Vec::new(),
            atomics: op.subject.precision.atomics,
        };
        let layouts = runner.description().layouts;
        for (name, tensor) in case.named_inputs(op.subject.schema()) {
            let tensor = if layouts { tensor } else { tensor.to_contiguous() };
            inspection.inputs.0.push((name, TensorData::base64_as_it_lies(&tensor)));
        }
        // A kernel that fails to run has no outputs to show; the verdict says why.
        for (spec, buffer) in specs.iter().zip(run_case(&op.subject, &case, runner).unwrap_or_default()) {
            let output = buffer.to_tensor().ok().map(|tensor| (spec.name.clone(), TensorData::base64(&tensor)));
            inspection.outputs.0.extend(output);
        }
        for (spec, expectation) in specs.iter().zip(op.subject.expect(&case).unwrap_or_default()) {
            let dtype = spec.dtype_in(case.descriptor.dtype);
            let shape = spec.shape(&case.descriptor.sizes).unwrap_or_default();
            let numbers = |values: &[f64]| {
                let tensor = Tensor::from_f64(DType::F64, shape.clone(), values).ok()?;
                Some((spec.name.clone(), TensorData::base64(&tensor)))
            };
            inspection.expected.0.extend(numbers(&expectation.values));
            inspection.allowed.0.extend(numbers(&allowance(&op.subject.rule(dtype), &expectation)));
            inspection.output_dtypes.push((spec.name.clone(), dtype));
        }
        Ok(Response::Inspection { inspection: Box::new(inspection) })
    }

    /// Shrinks a failing case and keeps the smallest one.
    pub(super) fn minimize(&self, request: &Minimize, job: &Job) -> Result<Response, Failure> {
        let strategy: MinimiseStrategy = match &request.strategy {
            None => MinimiseStrategy::default(),
            Some(name) => name.parse().map_err(Failure::invalid)?,
        };
        let mut budget = Budget::default();
        if let Some(runs) = request.max_runs {
            budget.runs = runs as usize;
        }
        let mut found =
            self.find(&request.project, request.op_name.as_deref(), request.seed, &request.config, false)?;
        job.say(&found.started.op.name);
        let verdict = found.judge()?;
        let original = found.result(verdict);
        let StartedOp { op, runner } = &mut found.started;
        let smallest = minimise_case(&op.subject, found.case.clone(), runner, strategy, budget);
        if let Some(error) = runner.error() {
            return Err(error.clone().into());
        }
        let Some(smallest) = smallest else {
            let how = if original.passed { "passes" } else { "cannot be judged" };
            let message = format!("the case with seed {} {how}: there is nothing to shrink", request.seed);
            return Err(Failure::new(ErrorCode::NotFound, message).hint(
                original
                    .message
                    .unwrap_or_else(|| "`gpuemu failures replay` says which stored failures still fail".to_string()),
            ));
        };
        let mut minimized = found.result(smallest.verdict);
        minimized.minimized = true;
        let run = self.store.next_run();
        minimized.run = Some(run);
        let result = ResultRecord::of(&minimized, &found.project.key, run, 0, 0);
        // Simplified values have no seed: however large they are, they are kept.
        let limit = if smallest.edited { u64::MAX } else { found.project.config.storage.snapshot_bytes };
        let snapshot = snapshot_of(&found.started.op, &smallest.case, limit);
        self.store.append(&[], &[FailureRecord { result, snapshot }])?;
        let inputs = smallest.case.named_inputs(found.started.op.subject.schema());
        let minimized = Minimized {
            original,
            minimized,
            neighbour: smallest.neighbour.map(|neighbour| Neighbour {
                dimension: neighbour.dimension,
                fails: neighbour.fails,
                passes: neighbour.passes,
            }),
            runs: smallest.runs,
            values_edited: smallest.edited,
            inputs: write_tensors(&inputs, Encoding::Base64, &mut Payload::default()),
        };
        Ok(Response::Minimized { minimized: Box::new(minimized) })
    }

    /// Runs stored failures again, each case once, the newest first.
    pub(super) fn replay_failures(&self, request: &ReplayFailures, job: &Job) -> Result<Response, Failure> {
        let project = self.project(&request.project)?;
        let limit = request.limit.map_or(usize::MAX, |limit| limit as usize);
        let query = ResultQuery { op: request.op_name.clone(), limit, ..ResultQuery::default() };
        let mut distinct: Vec<FailureRecord> = Vec::new();
        for record in self.store.failures(&project.key, &query)? {
            let same = |known: &FailureRecord| {
                let (known, other) = (&known.result.result, &record.result.result);
                known.op == other.op && known.case == other.case && known.client_side == other.client_side
            };
            if !distinct.iter().any(same) {
                distinct.push(record);
            }
        }
        job.plan(distinct.len() as u64);
        let mut failures = Vec::new();
        let mut started: Vec<(String, Result<StartedOp, Failure>)> = Vec::new();
        for record in distinct {
            if job.is_cancelled() {
                let message = format!("stopped after {} failures: the others were not replayed", failures.len());
                return Err(Failure::invalid(message));
            }
            let before = record.result.result;
            let name = before.op.clone();
            job.say(&name);
            if before.client_side {
                job.advance(false);
                failures.push(skipped(before));
                continue;
            }
            if !started.iter().any(|(known, _)| *known == name) {
                let opened = ConfiguredOp::open(&project, &name, &FuzzConfig::default(), &self.pool);
                started.push((name.clone(), opened.and_then(ConfiguredOp::start)));
            }
            let Some((_, op)) = started.iter_mut().find(|(known, _)| *known == name) else { continue };
            let replayed = replay_one(&project, op, &record.snapshot, before);
            job.advance(replayed.status == "FAILED");
            failures.push(replayed);
        }
        Ok(Response::Replayed { failures })
    }

    fn find_replayed(&self, request: &ReplayCase) -> Result<Found, Failure> {
        self.find(&request.project, request.op_name.as_deref(), request.seed, &request.config, request.minimized)
    }

    /// The case that a seed stands for: of a stored failure, of a stored result, or drawn anew.
    pub(super) fn find(
        &self,
        reference: &ProjectReference,
        op: Option<&str>,
        seed: u64,
        settings: &FuzzConfig,
        minimized: bool,
    ) -> Result<Found, Failure> {
        let project = self.project(reference)?;
        let query = ResultQuery {
            op: op.map(ToString::to_string),
            seed: Some(seed),
            limit: FAILURES,
            ..ResultQuery::default()
        };
        let failures = self.store.failures(&project.key, &query)?;
        // A stored case was drawn with settings of its own; where others are asked for, it is another case.
        let unasked = *settings == FuzzConfig::default();
        let wanted = |record: &&FailureRecord| {
            let stored = &record.result.result;
            stored.minimized == minimized && (unasked || stored.settings == *settings)
        };
        let runnable = |record: &&FailureRecord| !record.result.result.client_side;
        let stored = failures.iter().find(|record| runnable(record) && wanted(record));
        if stored.is_none()
            && let Some(record) = failures.iter().find(wanted)
        {
            return Err(of_a_client(&record.result.result));
        }
        if minimized && stored.is_none() {
            let message = format!("no minimized failure with seed {seed} is stored");
            return Err(Failure::new(ErrorCode::NotFound, message).hint(format!("gpuemu minimize {seed}")));
        }
        let kept = stored.map(|failure| failure.result.result.settings.clone());
        let settings = &if unasked { kept.unwrap_or_default() } else { settings.clone() };
        let (name, descriptor, snapshot) = match stored {
            Some(FailureRecord { result: ResultRecord { result, .. }, snapshot }) => {
                (result.op.clone(), Some(result.case.clone()), snapshot.clone())
            }
            None => match self.stored_result(&project, &query)? {
                Some(result) if unasked && !result.client_side => (result.op, Some(result.case), Snapshot::default()),
                Some(result) if unasked && op.is_none() => return Err(of_a_client(&result)),
                _ => (self.named(&project, op, seed)?, None, Snapshot::default()),
            },
        };
        let mut notes = Vec::new();
        let ready = ConfiguredOp::open(&project, &name, settings, &self.pool)?;
        let started = ready.start()?;
        let case = match descriptor {
            Some(descriptor) => stored_case(&started, descriptor, &snapshot, &mut notes)?,
            None => {
                let subject = &started.op.subject;
                let descriptor = subject.describe(&started.op.sampler, seed);
                let case = materialise(subject.schema(), &descriptor);
                case.map_err(|error| Failure::invalid(error.to_string()))?
            }
        };
        Ok(Found { project, started, case, settings: settings.clone(), notes })
    }

    /// The newest result of a seed that the daemon can run again; failing that, the newest one.
    fn stored_result(&self, project: &Project, query: &ResultQuery) -> Result<Option<ValidationResult>, Failure> {
        let mut found = self.store.results(&project.key, &ResultQuery { limit: 1, ..query.clone() })?;
        if found.first().is_some_and(|record| record.result.client_side) {
            found = self.store.results(&project.key, query)?;
            let place = found.iter().position(|record| !record.result.client_side).unwrap_or(0);
            found.swap(0, place);
        }
        Ok(found.into_iter().next().map(|record| record.result))
    }

    fn named(&self, project: &Project, op: Option<&str>, seed: u64) -> Result<String, Failure> {
        match (op, project.config.ops.as_slice()) {
            (Some(op), _) => Ok(op.to_string()),
            (None, [only]) => Ok(only.name.clone()),
            (None, _) => {
                let message = format!("no stored result of this project has seed {seed}");
                Err(Failure::new(ErrorCode::NotFound, message).hint("name the op with --op to draw its case anew"))
            }
        }
    }
}

/// A stored case: its descriptor, and its inputs where they were kept.
fn stored_case(
    started: &StartedOp,
    descriptor: CaseDescriptor,
    snapshot: &Snapshot,
    notes: &mut Vec<String>,
) -> Result<Case, Failure> {
    let subject = &started.op.subject;
    if descriptor.schema != subject.fingerprint() {
        notes.push("the op's definition has changed since this case was stored".to_string());
    }
    if snapshot.is_empty() {
        return materialise(subject.schema(), &descriptor).map_err(|error| Failure::invalid(error.to_string()));
    }
    let mut tensors = snapshot.tensors()?;
    let mut inputs = Vec::new();
    for spec in &subject.schema().inputs {
        let place = tensors.iter().position(|(name, _)| *name == spec.name);
        inputs.push(place.map(|place| tensors.swap_remove(place).1));
    }
    Ok(Case { descriptor, inputs })
}

/// A failure that a client found in its own process: only there can it be run again.
fn skipped(before: ValidationResult) -> Replayed {
    let message = Some(format!("runs in Python: {}", before.replay));
    Replayed { status: "SKIPPED".to_string(), result: ValidationResult { message, ..before } }
}

/// A case that a client judged in its own process, asked of the daemon.
fn of_a_client(result: &ValidationResult) -> Failure {
    let message = format!("the case of '{}' with seed {} runs in Python, not in the daemon", result.op, result.seed);
    Failure::invalid(message).hint(format!("run it where it was found: {}", result.replay))
}

fn replay_one(
    project: &Project,
    op: &mut Result<StartedOp, Failure>,
    snapshot: &Snapshot,
    before: ValidationResult,
) -> Replayed {
    let error = |failure: &Failure| Replayed {
        status: "ERROR".to_string(),
        result: ValidationResult { outcome: Outcome::Error, message: Some(failure.message.clone()), ..before.clone() },
    };
    let started = match op {
        Ok(started) => started,
        Err(failure) => return error(failure),
    };
    let mut notes = Vec::new();
    let case = match stored_case(started, before.case.clone(), snapshot, &mut notes) {
        Ok(case) => case,
        Err(failure) => return error(&failure),
    };
    let verdict = judge(&started.op.subject, &case, &mut started.runner);
    if let Some(broken) = started.runner.error() {
        return error(&broken.clone().into());
    }
    let warn_threshold = project.config.policies.warn_threshold;
    let context = Context::new(&started.op.name, None, &before.settings, warn_threshold);
    let mut result = result_of(&started.op.subject, &case, verdict, context);
    result.warnings.extend(notes);
    result.minimized = before.minimized;
    let status = match result.outcome {
        Outcome::Passed => "FIXED",
        Outcome::Failed => "FAILED",
        Outcome::Undetermined | Outcome::Error => "ERROR",
    };
    Replayed { status: status.to_string(), result }
}

/// The checks in the order in which they are made.
const ORDER: [Check; 24] = [
    Check::Runner,
    Check::Shape,
    Check::Dtype,
    Check::OutOfBounds,
    Check::Misaligned,
    Check::Uninitialised,
    Check::Race,
    Check::Synchronisation,
    Check::InputModified,
    Check::NotWritten,
    Check::Value,
    Check::UnexpectedNan,
    Check::MissingNan,
    Check::UnexpectedInfinity,
    Check::MissingInfinity,
    Check::Nondeterministic,
    Check::Invariant,
    Check::Aliasing,
    Check::OutputOverwritten,
    Check::StaleResult,
    Check::LaterCalls,
    Check::Metamorphic,
    Check::NotLaunched,
    Check::FloatEnvironment,
];

/// What each check said.
fn steps(verdict: &Verdict, op: &ConfiguredOp, runner: &RunnerDescription) -> Vec<InspectionStep> {
    let first_failed = ORDER.iter().position(|check| verdict.failures.iter().any(|finding| finding.check == *check));
    let mut steps = Vec::new();
    for (place, check) in ORDER.iter().enumerate() {
        let finding = verdict.failures.iter().find(|finding| finding.check == *check);
        let (status, detail) = if let Some(finding) = finding {
            ("failed", finding.explanation.clone())
        } else if let Some(why) = not_made(*check, verdict, op, runner) {
            ("not checked", why)
        } else if verdict.outcome == Outcome::Error || verdict.outcome == Outcome::Undetermined {
            ("not reached", verdict.message.clone().unwrap_or_default())
        } else if first_failed.is_some_and(|failed| failed < place && failed <= 2) {
            ("not reached", "there was no output to look at".to_string())
        } else {
            ("passed", passed_words(*check, verdict))
        };
        steps.push(InspectionStep { check: check.to_string(), status: status.to_string(), detail });
    }
    steps
}

fn not_made(check: Check, verdict: &Verdict, op: &ConfiguredOp, runner: &RunnerDescription) -> Option<String> {
    let unseen = |what: &str| {
        verdict.not_checked.iter().any(|missing| missing == what).then(|| "the runner keeps its own memory".to_string())
    };
    match check {
        Check::OutOfBounds => unseen("stores out of bounds"),
        Check::InputModified => unseen("modified inputs"),
        Check::NotWritten => unseen("unwritten outputs"),
        Check::Misaligned | Check::Uninitialised | Check::Race | Check::Synchronisation
            if runner.kind != RunnerKind::PtxMachine =>
        {
            Some("only a compiled kernel in the PTX machine is checked for this".to_string())
        }
        Check::Nondeterministic => unseen("determinism").map(|_| "there was one run".to_string()),
        Check::Aliasing => unseen("modified inputs"),
        Check::NotLaunched if !op.watches_launches() => Some("the op has no `launches`".to_string()),
        Check::LaterCalls => Some("only a run repeats a case".to_string()),
        Check::OutputOverwritten | Check::StaleResult if !runner.refills => {
            Some("the runner does not keep its addresses".to_string())
        }
        Check::Invariant if op.subject.invariants.is_empty() => Some("none are configured".to_string()),
        Check::Metamorphic if op.subject.schema().properties.is_empty() => {
            Some("the op declares no properties".to_string())
        }
        Check::UnexpectedNan if op.subject.forgiven.nan => Some("check_nan is off".to_string()),
        Check::UnexpectedInfinity if op.subject.forgiven.infinity => Some("check_inf is off".to_string()),
        _ => None,
    }
}

fn passed_words(check: Check, verdict: &Verdict) -> String {
    match check {
        Check::Value => format!(
            "{} elements within {}; largest error {:e} ({:.2} of what is allowed)",
            verdict.elements.compared, verdict.tolerance, verdict.largest.max_abs_diff, verdict.largest.tolerance_share
        ),
        Check::Nondeterministic => "two runs gave the same bits".to_string(),
        _ => String::new(),
    }
}
