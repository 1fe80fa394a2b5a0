//! The cases of one op in one run: drawn, run, judged, kept.

use std::time::{Duration, Instant};

use gpuemu_common::finding::{LargestErrors, Outcome};
use gpuemu_common::protocol::FuzzConfig;
use gpuemu_common::report::{CaseSummary, DtypeCounts, OpReport, OpStatus, ValidationResult};
use gpuemu_common::rng::case_seed;
use gpuemu_engine::case::materialise;
use gpuemu_engine::judge;
use gpuemu_engine::oracle::strength::Strength;
use gpuemu_engine::{Case, Verdict};

use super::Service;
use super::result::{Context, record_of, result_of};
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

/// Cases of a dtype of which one at least must be judged; fewer may all be empty by chance.
const LEAST_CASES: u64 = 5;

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

/// The report on an op of which nothing is known yet.
fn blank(op: &str) -> OpReport {
    OpReport {
        op: op.to_string(),
        status: OpStatus::Passed,
        line: 0,
        runner: String::new(),
        reference: String::new(),
        planned: 0,
        cases: 0,
        passed: 0,
        failed: 0,
        undetermined: 0,
        errors: 0,
        dtypes: Vec::new(),
        max_abs_diff: 0.0,
        max_rel_diff: 0.0,
        max_ulp_diff: 0.0,
        tolerance_share: 0.0,
        failures: Vec::new(),
        message: None,
        warnings: Vec::new(),
        not_checked: Vec::new(),
        regressed: false,
        seconds: 0.0,
        case_results: Vec::new(),
    }
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
    report: OpReport,
    errors: LargestErrors,
    strength: Strength,
    /// Failures that the rigorous bound of the built-in op would not have called one.
    within_bound: u64,
    /// Why the first case that could not be judged could not be.
    undetermined: Option<String>,
    results: Vec<ResultRecord>,
    failures: Vec<FailureRecord>,
    written: Instant,
}

impl<'a> Campaign<'a> {
    fn new(service: &'a Service, project: &'a Project, started: StartedOp, plan: &'a Plan) -> Self {
        let mut report = blank(&started.op.name);
        report.warnings.clone_from(&started.op.warnings);
        Self {
            service,
            project,
            started,
            plan,
            report,
            errors: LargestErrors::default(),
            strength: Strength::default(),
            within_bound: 0,
            undetermined: None,
            results: Vec::new(),
            failures: Vec::new(),
            written: Instant::now(),
        }
    }

    fn run(mut self, job: &Job) -> OpReport {
        for index in 0..self.plan.iterations {
            if job.is_cancelled() {
                self.unfinished("cancelled");
                break;
            }
            if self.plan.deadline.is_some_and(|deadline| Instant::now() >= deadline) {
                if !self.plan.until_deadline {
                    self.unfinished("time ran out");
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
            return broken(&self.report.op, failure);
        }
        self.conclude()
    }

    /// Runs one case; whether it failed, or `None` where going on makes no sense.
    fn case(&mut self, index: u64) -> Option<bool> {
        let StartedOp { op, runner } = &mut self.started;
        let descriptor = op.subject.describe(&op.sampler, case_seed(self.plan.base_seed, index));
        let case = match materialise(op.subject.schema(), &descriptor) {
            Ok(case) => case,
            Err(error) => {
                self.stop(format!("case {index} (seed {}) cannot be made: {error}", descriptor.seed));
                return None;
            }
        };
        let verdict = judge(&op.subject, &case, runner);
        if let Some(message) = runner.broken().map(ToString::to_string) {
            self.stop(message);
            return None;
        }
        if let Some(bound) = op.bound.as_ref().filter(|_| verdict.failed() && self.report.failed < MOST_COMPARED) {
            self.within_bound += u64::from(judge(bound, &case, runner).outcome == Outcome::Passed);
        }
        let warn_threshold = self.project.config.policies.warn_threshold;
        let context = Context { op: &op.name, run: Some(self.plan.run), settings: &self.plan.settings, warn_threshold };
        let result = result_of(&op.subject, &verdict, context);
        self.count(&verdict, &result);
        self.keep(index, &case, &verdict, result);
        if verdict.outcome == Outcome::Error {
            self.stop(verdict.undetermined.unwrap_or_default());
            return None;
        }
        let due = self.results.len() >= BATCH || self.written.elapsed() >= BATCH_TIME;
        if let Err(failure) = if due { self.write() } else { Ok(()) } {
            self.stop(failure.message);
            return None;
        }
        Some(verdict.failed())
    }

    fn stop(&mut self, message: String) {
        self.report.status = OpStatus::Error;
        self.report.message = Some(message);
    }

    fn unfinished(&mut self, why: &str) {
        self.report.status = OpStatus::Unfinished;
        let (cases, planned) = (self.report.cases, self.plan.iterations);
        self.report.message = Some(format!("{why} after {cases} of {planned} cases"));
    }

    fn count(&mut self, verdict: &Verdict, result: &ValidationResult) {
        let report = &mut self.report;
        report.cases += 1;
        match verdict.outcome {
            Outcome::Passed => report.passed += 1,
            Outcome::Failed => report.failed += 1,
            Outcome::Undetermined => {
                report.undetermined += 1;
                self.undetermined = self.undetermined.take().or_else(|| verdict.undetermined.clone());
            }
            Outcome::Error => report.errors += 1,
        }
        let dtype = result.dtype;
        let place = report.dtypes.iter().position(|counts| counts.dtype == dtype).unwrap_or_else(|| {
            report.dtypes.push(DtypeCounts { dtype, cases: 0, failed: 0, judged: 0, max_abs_diff: 0.0 });
            report.dtypes.len() - 1
        });
        let counts = &mut report.dtypes[place];
        counts.cases += 1;
        counts.failed += u64::from(verdict.failed());
        counts.judged += u64::from(verdict.outcome == Outcome::Passed && verdict.elements.compared > 0);
        counts.max_abs_diff = counts.max_abs_diff.max(verdict.errors.absolute);
        self.errors = self.errors.join(verdict.errors);
        self.strength.add(verdict);
        for missing in &result.not_checked {
            if !report.not_checked.contains(missing) {
                report.not_checked.push(missing.clone());
            }
        }
        if report.case_results.len() < OpReport::MOST_CASES {
            report.case_results.push(CaseSummary {
                outcome: verdict.outcome,
                max_abs_diff: result.max_abs_diff,
                max_ulp_diff: result.max_ulp_diff,
                case: result.case.clone(),
            });
        }
    }

    fn keep(&mut self, index: u64, case: &Case, verdict: &Verdict, result: ValidationResult) {
        let record = record_of(&result, &self.project.key, self.plan.run, index, self.plan.base_seed);
        if verdict.failed() {
            let snapshot = snapshot_of(&self.started.op, case, self.project.config.storage.snapshot_bytes);
            let verdict = serde_json::to_string(&result).unwrap_or_default();
            self.failures.push(FailureRecord { result: record.clone(), verdict, snapshot });
            if self.report.failures.len() < OpReport::MOST_FAILURES {
                self.report.failures.push(result);
            }
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

    fn conclude(mut self) -> OpReport {
        let report = &mut self.report;
        (report.max_abs_diff, report.max_rel_diff) = (self.errors.absolute, self.errors.relative);
        (report.max_ulp_diff, report.tolerance_share) = (self.errors.ulps, self.errors.share);
        report.dtypes.sort_by_key(|counts| counts.dtype);
        if report.failed > 0 {
            report.status = OpStatus::Failed;
        } else if report.status == OpStatus::Passed && report.dtypes.iter().all(|counts| counts.judged == 0) {
            report.status = OpStatus::Error;
            report.message = Some(match report.undetermined {
                0 if report.cases > 0 => "no case had an element to compare".to_string(),
                0 => "no case was run".to_string(),
                count => {
                    format!("none of {count} cases could be judged: {}", self.undetermined.as_deref().unwrap_or(""))
                }
            });
        }
        let unjudged = |counts: &&DtypeCounts| counts.cases >= LEAST_CASES && counts.judged + counts.failed == 0;
        if let Some(counts) = report.dtypes.iter().find(unjudged).filter(|_| report.status == OpStatus::Passed) {
            let reason = self.undetermined.as_deref().unwrap_or("there was nothing to compare");
            report.message = Some(format!("no case of {} could be judged: {reason}", counts.dtype));
            report.status = OpStatus::Error;
        }
        if report.failed == 0 {
            for weakness in self.strength.weaknesses() {
                report.warnings.push(format!("weak in {}: {}", weakness.dtype, weakness.reason));
            }
            let share = report.tolerance_share;
            let threshold = self.project.config.policies.warn_threshold;
            if share >= threshold && share <= 1.0 {
                report.warnings.push(format!("an error uses {:.0} % of the tolerance", 100.0 * share));
            }
        }
        if self.within_bound > 0 {
            let (within, looked_at) = (self.within_bound, report.failed.min(MOST_COMPARED));
            report.warnings.push(format!(
                "{within} of the first {looked_at} failures are within the rigorous bound of the built-in op: no correct \
                 kernel can keep this tolerance; leave reference and tolerances out to be judged by the bound"
            ));
        }
        if report.undetermined > 0 && report.passed > 0 {
            let reason = self.undetermined.as_deref().unwrap_or_default();
            report.warnings.push(format!("{} cases could not be judged, the first: {reason}", report.undetermined));
        }
        self.report
    }
}
