//! The cases of one op in one run: drawn, run, judged, kept.

use std::time::{Duration, Instant};

use gpuemu_common::finding::Outcome;
use gpuemu_common::protocol::FuzzConfig;
use gpuemu_common::report::{OpReport, OpStatus, ValidationResult};
use gpuemu_common::rng::case_seed;
use gpuemu_engine::case::{CaseDescriptor, materialise};
use gpuemu_engine::judge;
use gpuemu_engine::{Case, Verdict};

use super::Service;
use super::result::{Context, record_of, result_of};
use super::tally::{Tally, blank};
use super::validate::snapshot_of;
use crate::configured_op::{ConfiguredOp, StartedOp};
use crate::failure::Failure;
use crate::jobs::Job;
use crate::project::Project;
use crate::store::{FailureRecord, ResultRecord};

/// Results that are written together, unless this long has passed.
const BATCH: usize = 256;
const BATCH_TIME: Duration = Duration::from_millis(250);

/// Failures by a tolerance that are held against the bound as well.
const MOST_COMPARED: u64 = 20;

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
}

/// Tries the cases of an op.
pub(super) fn run_op(service: &Service, project: &Project, op: ConfiguredOp, plan: &Plan, job: &Job) -> OpReport {
    let started = Instant::now();
    let (name, line, source, reference) = (op.name.clone(), op.line, op.source.clone(), op.reference.clone());
    let mut report = match op.start() {
        Ok(started) => Campaign::new(service, project, started, plan).run(job),
        Err(failure) => broken(&name, failure),
    };
    (report.line, report.runner, report.reference) = (line, source, reference);
    report.planned = if plan.until_deadline { report.cases } else { plan.iterations };
    report.seconds = started.elapsed().as_secs_f64();
    report
}

/// The report on an op that cannot be tried.
pub(super) fn broken(op: &str, failure: Failure) -> OpReport {
    let message = match failure.hint {
        Some(hint) => format!("{}\nhint: {hint}", failure.message),
        None => failure.message,
    };
    OpReport { status: OpStatus::Error, message: Some(message), ..blank(op) }
}

/// The report on an op that another one's failure kept from being tried.
pub(super) fn not_run(op: &str) -> OpReport {
    let message = Some("not run: another op failed before".to_string());
    OpReport { status: OpStatus::Unfinished, message, ..blank(op) }
}

struct Campaign<'a> {
    service: &'a Service,
    project: &'a Project,
    started: StartedOp,
    plan: &'a Plan,
    tally: Tally,
    /// Failures that the rigorous bound of the built-in op would not have called one.
    within_bound: u64,
    /// Cases that the op's kernel does not cover, and the first of them.
    left_out: (u64, Option<CaseDescriptor>),
    results: Vec<ResultRecord>,
    failures: Vec<FailureRecord>,
    written: Instant,
}

impl<'a> Campaign<'a> {
    fn new(service: &'a Service, project: &'a Project, started: StartedOp, plan: &'a Plan) -> Self {
        let mut tally = Tally::new(&started.op.name);
        tally.report.warnings.clone_from(&started.op.warnings);
        Self {
            service,
            project,
            started,
            plan,
            tally,
            within_bound: 0,
            left_out: (0, None),
            results: Vec::new(),
            failures: Vec::new(),
            written: Instant::now(),
        }
    }

    fn run(mut self, job: &Job) -> OpReport {
        for index in 0..self.plan.iterations {
            if job.is_cancelled() {
                self.tally.unfinished("cancelled", self.plan.iterations);
                break;
            }
            if self.plan.deadline.is_some_and(|deadline| Instant::now() >= deadline) {
                if !self.plan.until_deadline {
                    self.tally.unfinished("time ran out", self.plan.iterations);
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
        self.conclude()
    }

    /// Runs one case; whether it failed, or `None` where going on makes no sense.
    fn case(&mut self, index: u64) -> Option<bool> {
        let StartedOp { op, runner } = &mut self.started;
        let seed = case_seed(self.plan.base_seed, index);
        let descriptor = op.subject.describe(&op.sampler, seed);
        if let Some(case) = op.subject.left_out(&op.sampler, seed) {
            self.left_out.0 += 1;
            self.left_out.1.get_or_insert(case);
        }
        let case = match materialise(op.subject.schema(), &descriptor) {
            Ok(case) => case,
            Err(error) => {
                self.tally.stop(format!("case {index} (seed {}) cannot be made: {error}", descriptor.seed));
                return None;
            }
        };
        let verdict = judge(&op.subject, &case, runner);
        if let Some(message) = runner.broken().map(ToString::to_string) {
            self.tally.stop(message);
            return None;
        }
        if let Some(bound) = op.bound.as_ref().filter(|_| verdict.failed() && self.tally.report.failed < MOST_COMPARED)
        {
            self.within_bound += u64::from(judge(bound, &case, runner).outcome == Outcome::Passed);
        }
        let warn_threshold = self.project.config.policies.warn_threshold;
        let context = Context { op: &op.name, run: Some(self.plan.run), settings: &self.plan.settings, warn_threshold };
        let result = result_of(&op.subject, &verdict, context);
        self.tally.add(&verdict, &result);
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
        let record = record_of(result, &self.project.key, self.plan.run, index, self.plan.base_seed);
        if verdict.failed() {
            let snapshot = snapshot_of(&self.started.op, case, self.project.config.storage.snapshot_bytes);
            let verdict = serde_json::to_string(result).unwrap_or_default();
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

    fn conclude(self) -> OpReport {
        let mut report = self.tally.conclude(self.project.config.policies.warn_threshold);
        if let (count, Some(case)) = self.left_out {
            report.not_checked.push(format!(
                "cases that no variant of the kernel of '{}' covers ({count} of {} were drawn again, the first: {}, {})",
                report.op, report.cases, case.dtype, case.sizes
            ));
        }
        if self.within_bound > 0 {
            let (within, looked_at) = (self.within_bound, report.failed.min(MOST_COMPARED));
            report.warnings.push(format!(
                "{within} of the first {looked_at} failures are within the rigorous bound of the built-in op: no correct \
                 kernel can keep this tolerance; leave reference and tolerances out to be judged by the bound"
            ));
        }
        report
    }
}
