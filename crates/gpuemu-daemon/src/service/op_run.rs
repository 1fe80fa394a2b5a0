//! The cases of one op in one run: drawn, run, judged, kept.

use std::time::{Duration, Instant};

use gpuemu_config::failure::Failure;
use gpuemu_engine::case::materialise;
use gpuemu_engine::judge;
use gpuemu_engine::{Case, Verdict};
use gpuemu_model::error_code::ErrorCode;
use gpuemu_model::finding::Outcome;
use gpuemu_model::json::ToJson;
use gpuemu_model::report::{OpReport, OpStatus, ValidationResult};
use gpuemu_model::settings::FuzzConfig;
use gpuemu_model::shard::Shard;
use gpuemu_process::fault;
use gpuemu_run::configured_op::{ConfiguredOp, StartedOp};
use gpuemu_run::project::Project;
use gpuemu_run::result::{Context, result_of};
use gpuemu_run::sources::digests;
use gpuemu_run::tally::{MOST_COMPARED, Tally, facts_of, summary_of};
use gpuemu_store::results::record_of;
use gpuemu_store::{FailureRecord, ResultRecord};
use gpuemu_tensor::rng::case_seed;

use super::Service;
use super::validate::snapshot_of;
use crate::jobs::Job;

/// Results that are written together, unless this long has passed.
const BATCH: usize = 256;
const BATCH_TIME: Duration = Duration::from_millis(250);

/// What a run does with each op.
#[derive(Debug, Clone)]
pub(super) struct Plan {
    /// The run.
    pub run: u64,
    /// Base seed.
    pub base_seed: u64,
    /// Cases.
    pub iterations: u64,
    /// When time is up.
    pub deadline: Option<Instant>,
    /// Whether running out of time is what was asked for.
    pub until_deadline: bool,
    /// Stop at the first failure.
    pub fail_fast: bool,
    /// What cases are drawn from.
    pub settings: FuzzConfig,
    /// Only the cases of one shard.
    pub shard: Option<Shard>,
}

impl Plan {
    /// Cases that are run of each op.
    pub fn cases(&self) -> u64 {
        self.shard.map_or(self.iterations, |shard| shard.size(self.iterations))
    }
}

/// Tries the cases of an op.
pub(super) fn run_op(service: &Service, project: &Project, op: ConfiguredOp, plan: &Plan, job: &Job) -> OpReport {
    let started = Instant::now();
    let (name, line, source, reference) = (op.name.clone(), op.line, op.source.clone(), op.reference.clone());
    // Before anything of it runs: what is edited meanwhile is not what was tried.
    let sources = digests(&project.config.root, &op.files());
    let injected = || Failure::new(ErrorCode::InternalError, "injected");
    let mut report = match fault!("op.start", injected(), op.start()) {
        Ok(started) => OpRun::new(service, project, started, plan).run(job),
        Err(failure) => broken(&name, failure),
    };
    (report.line, report.runner, report.reference, report.sources) = (line, source, reference, sources);
    report.planned = if plan.until_deadline { report.cases } else { plan.cases() };
    report.seconds = started.elapsed().as_secs_f64();
    report
}

/// The report on an op that cannot be tried.
pub(super) fn broken(op: &str, failure: Failure) -> OpReport {
    let message = match failure.hint {
        Some(hint) => format!("{}\nhint: {hint}", failure.message),
        None => failure.message,
    };
    OpReport { status: OpStatus::Error, message: Some(message), ..OpReport::blank(op) }
}

/// The report on an op whose run has not come to its end.
pub(super) fn broken_off(op: &str) -> OpReport {
    let message = Some("its run broke off before its end".to_string());
    OpReport { status: OpStatus::Unfinished, message, ..OpReport::blank(op) }
}

/// The report on an op that another one's failure kept from being tried.
pub(super) fn not_run(op: &str) -> OpReport {
    let message = Some("not run: another op failed before".to_string());
    OpReport { status: OpStatus::Unfinished, message, ..OpReport::blank(op) }
}

struct OpRun<'a> {
    service: &'a Service,
    project: &'a Project,
    started: StartedOp,
    plan: &'a Plan,
    tally: Tally,
    results: Vec<ResultRecord>,
    failures: Vec<FailureRecord>,
    written: Instant,
}

impl<'a> OpRun<'a> {
    fn new(service: &'a Service, project: &'a Project, started: StartedOp, plan: &'a Plan) -> Self {
        let tally = Tally::new(&started.op.name, &started.op.warnings);
        Self {
            service,
            project,
            started,
            plan,
            tally: if plan.shard.is_some() { tally.keep_part() } else { tally },
            results: Vec::new(),
            failures: Vec::new(),
            written: Instant::now(),
        }
    }

    fn run(mut self, job: &Job) -> OpReport {
        let Plan { iterations, shard, .. } = *self.plan;
        for index in shard.unwrap_or(Shard::WHOLE).cases(iterations) {
            if job.is_cancelled() {
                self.tally.unfinished("cancelled", self.plan.cases());
                break;
            }
            if self.plan.deadline.is_some_and(|deadline| Instant::now() >= deadline) {
                if !self.plan.until_deadline {
                    self.tally.unfinished("time ran out", self.plan.cases());
                }
                break;
            }
            let Some(failed) = self.case(index) else { break };
            job.advance(failed);
            if failed && self.plan.fail_fast {
                break;
            }
        }
        if let Err(failure) = self.write() {
            return broken(&self.tally.report.op, failure);
        }
        fault!("op.conclude");
        self.tally.conclude(self.project.config.policies.warn_threshold)
    }

    /// Runs one case; whether it failed, or `None` where going on makes no sense.
    fn case(&mut self, index: u64) -> Option<bool> {
        let StartedOp { op, runner } = &mut self.started;
        let seed = case_seed(self.plan.base_seed, index);
        fault!("case.describe");
        let descriptor = op.subject.describe(&op.sampler, seed);
        let left_out = op.subject.left_out(&op.sampler, seed);
        let made = materialise(op.subject.schema(), &descriptor).map_err(|error| error.to_string());
        let case = match fault!("case.materialise", "injected".to_string(), made) {
            Ok(case) => case,
            Err(error) => {
                self.tally.stop(format!("case {index} (seed {}) cannot be made: {error}", descriptor.seed));
                return None;
            }
        };
        fault!("case.judge");
        let verdict = judge(&op.subject, &case, runner);
        fault!("case.judged");
        if let Some(message) = runner.broken().map(ToString::to_string) {
            self.tally.stop(message);
            return None;
        }
        let mut facts = facts_of(index, &verdict);
        facts.left_out = left_out.map(|case| format!("{}, {}", case.dtype, case.sizes));
        if let Some(bound) = op.bound.as_ref().filter(|_| verdict.failed() && self.tally.report.failed < MOST_COMPARED)
        {
            fault!("case.judge_by_bound");
            facts.within_bound = Some(judge(bound, &case, runner).outcome == Outcome::Passed);
        }
        let warn_threshold = self.project.config.policies.warn_threshold;
        let context = Context { op: &op.name, run: Some(self.plan.run), settings: &self.plan.settings, warn_threshold };
        fault!("case.result");
        let result = result_of(&op.subject, &verdict, context);
        fault!("case.tally");
        self.tally.add_case(facts, summary_of(&verdict, &result), verdict.failed().then_some(&result));
        self.keep(index, &case, &verdict, &result);
        if verdict.outcome == Outcome::Error {
            self.tally.stop(verdict.undetermined.unwrap_or_default());
            return None;
        }
        let due = self.results.len() >= BATCH || self.written.elapsed() >= BATCH_TIME;
        if let Err(failure) = if due { self.write() } else { Ok(()) } {
            self.tally.stop(failure.message);
            return None;
        }
        Some(verdict.failed())
    }

    fn keep(&mut self, index: u64, case: &Case, verdict: &Verdict, result: &ValidationResult) {
        fault!("case.record");
        let record = record_of(result, &self.project.key, self.plan.run, index, self.plan.base_seed);
        if verdict.failed() {
            fault!("case.snapshot");
            let snapshot = snapshot_of(&self.started.op, case, self.project.config.storage.snapshot_bytes);
            let verdict = result.to_json().unwrap_or_default();
            self.failures.push(FailureRecord { result: record.clone(), verdict, snapshot });
        }
        self.results.push(record);
    }

    fn write(&mut self) -> Result<(), Failure> {
        self.service.store.append(&self.results, &self.failures)?;
        self.results.clear();
        self.failures.clear();
        self.written = Instant::now();
        Ok(())
    }
}
