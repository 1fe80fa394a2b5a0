//! Adds up the verdicts on the cases of one op, and says what they come to.

use gpuemu_common::finding::{LargestErrors, Outcome};
use gpuemu_common::report::{CaseSummary, DtypeCounts, OpReport, OpStatus, ValidationResult};
use gpuemu_engine::Verdict;
use gpuemu_engine::oracle::strength::Strength;

/// Cases of a dtype of which one at least must be judged; fewer may all be empty by chance.
const LEAST_CASES: u64 = 5;

/// Verdicts on the cases of one op.
pub struct Tally {
    /// What is known so far; what a verdict does not say is the caller's to fill in.
    pub report: OpReport,
    errors: LargestErrors,
    strength: Strength,
    /// Why the first case that could not be judged could not be.
    undetermined: Option<String>,
}

impl Tally {
    /// No verdicts yet.
    pub fn new(op: &str) -> Self {
        Self { report: blank(op), errors: LargestErrors::default(), strength: Strength::default(), undetermined: None }
    }

    /// Adds a verdict.
    pub fn add(&mut self, verdict: &Verdict, result: &ValidationResult) {
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
        if verdict.failed() && report.failures.len() < OpReport::MOST_FAILURES {
            report.failures.push(result.clone());
        }
    }

    /// Adds the verdict on a case that was counted as passed and has failed since, in its place.
    pub fn fail(&mut self, verdict: &Verdict, result: &ValidationResult) {
        let report = &mut self.report;
        report.cases = report.cases.saturating_sub(1);
        report.passed = report.passed.saturating_sub(1);
        for counts in report.dtypes.iter_mut().filter(|counts| counts.dtype == result.dtype) {
            counts.cases = counts.cases.saturating_sub(1);
            counts.judged = counts.judged.saturating_sub(1);
        }
        if let Some(place) = report.case_results.iter().position(|summary| summary.case == result.case) {
            report.case_results.remove(place);
        }
        self.add(verdict, result);
    }

    /// Ends it: the op cannot be judged.
    pub fn stop(&mut self, message: String) {
        self.report.status = OpStatus::Error;
        self.report.message = Some(message);
    }

    /// Ends it before all of `planned` cases were run.
    pub fn unfinished(&mut self, why: &str, planned: u64) {
        self.report.status = OpStatus::Unfinished;
        self.report.message = Some(format!("{why} after {} of {planned} cases", self.report.cases));
    }

    /// What the verdicts come to. Warnings begin at a share of the tolerance.
    pub fn conclude(mut self, warn_threshold: f64) -> OpReport {
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
            if share >= warn_threshold && share <= 1.0 {
                report.warnings.push(format!("an error uses {:.0} % of the tolerance", 100.0 * share));
            }
        }
        if report.undetermined > 0 && report.passed > 0 {
            let reason = self.undetermined.as_deref().unwrap_or_default();
            report.warnings.push(format!("{} cases could not be judged, the first: {reason}", report.undetermined));
        }
        self.report
    }
}

/// The report on an op of which nothing is known yet.
pub(super) fn blank(op: &str) -> OpReport {
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
