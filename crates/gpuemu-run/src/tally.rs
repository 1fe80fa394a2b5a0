//! Adds up the verdicts on the cases of one op, and says what they come to.

use gpuemu_engine::Verdict;
use gpuemu_engine::oracle::strength::Strength;
use gpuemu_model::finding::Outcome;
use gpuemu_model::report::{CaseSummary, DtypeCounts, OpReport, OpStatus, ValidationResult};
use gpuemu_model::shard::{CaseFacts, OpPart, Stopped};

/// Cases of a dtype of which one at least must be judged; fewer may all be empty by chance.
const LEAST_CASES: u64 = 5;

/// Failures by a tolerance that are held against the bound as well.
pub const MOST_COMPARED: u64 = 20;

/// Verdicts on the cases of one op.
pub struct Tally {
    /// What is known so far; what a verdict does not say is the caller's to fill in.
    pub report: OpReport,
    strength: Strength,
    /// Whether the project leaves NaN or infinity unchecked.
    pub forgives: bool,
    /// Why the first case that could not be judged could not be.
    undetermined: Option<String>,
    /// Cases that the op's kernel does not cover, and the first of them.
    left_out: (u64, Option<String>),
    /// Failures that the rigorous bound of the built-in op would not have called one, of so many looked at.
    within_bound: (u64, u64),
    /// What the shard of a run is made of.
    part: Option<OpPart>,
}

impl Tally {
    /// No verdicts yet, and things worth knowing before the first.
    pub fn new(op: &str, warnings: &[String]) -> Self {
        Self {
            report: OpReport { warnings: warnings.to_vec(), ..OpReport::blank(op) },
            strength: Strength::default(),
            forgives: false,
            undetermined: None,
            left_out: (0, None),
            within_bound: (0, 0),
            part: None,
        }
    }

    /// Keeps what joining this with the other shards of a run needs.
    pub fn keep_part(mut self) -> Self {
        self.part = Some(OpPart { warnings: self.report.warnings.clone(), ..OpPart::default() });
        self
    }

    /// Adds the verdict on a case of the run.
    pub fn add(&mut self, facts: CaseFacts, verdict: &Verdict) {
        self.add_case(facts, Some(summary_of(verdict)), verdict.failed().then_some(&verdict.result));
    }

    /// Adds a case: what adding up needs of it, its summary, and all of it if it failed. Without a summary the case is not listed.
    pub fn add_case(&mut self, facts: CaseFacts, summary: Option<CaseSummary>, failure: Option<&ValidationResult>) {
        let report = &mut self.report;
        report.cases += 1;
        match facts.outcome {
            Outcome::Passed => report.passed += 1,
            Outcome::Failed => report.failed += 1,
            Outcome::Undetermined => {
                report.undetermined += 1;
                self.undetermined = self.undetermined.take().or_else(|| facts.message.clone());
            }
            Outcome::Error => report.errors += 1,
        }
        let dtype = facts.dtype;
        let place = report.dtypes.iter().position(|counts| counts.dtype == dtype).unwrap_or_else(|| {
            report.dtypes.push(DtypeCounts { dtype, cases: 0, failed: 0, judged: 0, max_abs_diff: 0.0 });
            report.dtypes.len() - 1
        });
        let counts = &mut report.dtypes[place];
        counts.cases += 1;
        counts.failed += u64::from(facts.outcome == Outcome::Failed);
        counts.judged += u64::from(facts.outcome == Outcome::Passed && facts.compared > 0);
        counts.max_abs_diff = counts.max_abs_diff.max(facts.largest.max_abs_diff);
        report.largest = report.largest.join(facts.largest);
        self.strength.see(dtype, &facts.rejected, &facts.accepted, facts.outcome, facts.compared);
        if let Some(drawn) = &facts.left_out {
            self.left_out.0 += 1;
            self.left_out.1.get_or_insert_with(|| drawn.clone());
        }
        if let Some(within) = facts.within_bound.filter(|_| self.within_bound.1 < MOST_COMPARED) {
            self.within_bound.0 += u64::from(within);
            self.within_bound.1 += 1;
        }
        for missing in &facts.not_checked {
            if !report.not_checked.contains(missing) {
                report.not_checked.push(missing.clone());
            }
        }
        if report.case_results.len() < OpReport::MOST_CASES {
            report.case_results.extend(summary);
        }
        if report.failures.len() < OpReport::MOST_FAILURES {
            report.failures.extend(failure.cloned());
        }
        if let Some(part) = &mut self.part {
            part.cases.push(facts);
        }
    }

    /// Adds the verdict on a case that was counted as passed and has failed since, in its place.
    pub fn fail(&mut self, index: u64, verdict: &Verdict) {
        if let Some(part) = &mut self.part {
            part.cases.retain(|facts| facts.index != index);
        }
        let report = &mut self.report;
        report.cases = report.cases.saturating_sub(1);
        report.passed = report.passed.saturating_sub(1);
        for counts in report.dtypes.iter_mut().filter(|counts| counts.dtype == verdict.dtype) {
            counts.cases = counts.cases.saturating_sub(1);
            counts.judged = counts.judged.saturating_sub(1);
        }
        if let Some(place) = report.case_results.iter().position(|summary| summary.case == verdict.case) {
            report.case_results.remove(place);
        }
        self.add(facts_of(index, verdict), verdict);
    }

    /// Ends it: the op cannot be judged.
    pub fn stop(&mut self, message: String) {
        self.end(Stopped { status: OpStatus::Error, message });
    }

    /// Ends it before all of `planned` cases were run.
    pub fn unfinished(&mut self, why: &str, planned: u64) {
        let message = format!("{why} after {} of {planned} cases", self.report.cases);
        self.end(Stopped { status: OpStatus::Unfinished, message });
    }

    /// Ends it before its last case.
    pub fn end(&mut self, stopped: Stopped) {
        self.report.status = stopped.status;
        self.report.message = Some(stopped.message.clone());
        if let Some(part) = &mut self.part {
            part.stopped = Some(stopped);
        }
    }

    /// What the verdicts come to. Warnings begin at a share of the tolerance.
    pub fn conclude(mut self, warn_threshold: f64) -> OpReport {
        let report = &mut self.report;
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
        // Where most of an output is not looked at, the cases that happen to have nothing else are no evidence.
        if self.forgives && report.status == OpStatus::Passed && 2 * report.undetermined > report.cases {
            let (count, cases) = (report.undetermined, report.cases);
            let reason = self.undetermined.as_deref().unwrap_or_default();
            report.message = Some(format!(
                "{count} of {cases} cases could not be judged: {reason}, with check_nan or check_inf off"
            ));
            report.status = OpStatus::Error;
        }
        if report.failed == 0 {
            for weakness in self.strength.weaknesses() {
                report.weak.push(weakness.dtype);
                report.warnings.push(format!("weak in {}: {}", weakness.dtype, weakness.reason));
            }
            let share = report.largest.tolerance_share;
            if share >= warn_threshold && share <= 1.0 {
                report.warnings.push(format!("an error uses {:.0} % of the tolerance", 100.0 * share));
            }
        }
        if report.undetermined > 0 && report.passed > 0 {
            let reason = self.undetermined.as_deref().unwrap_or_default();
            report.warnings.push(format!("{} cases could not be judged, the first: {reason}", report.undetermined));
        }
        if let (count, Some(drawn)) = self.left_out {
            report.not_checked.push(format!(
                "cases that no variant of the kernel of '{}' covers ({count} of {} were drawn again, the first: {drawn})",
                report.op, report.cases
            ));
        }
        if let (within @ 1.., looked_at) = self.within_bound {
            report.warnings.push(format!(
                "{within} of the first {looked_at} failures are within the rigorous bound of the built-in op: no correct \
                 kernel can keep this tolerance; leave reference and tolerances out to be judged by the bound"
            ));
        }
        report.part = self.part;
        self.report
    }
}

/// What adding up takes from a verdict.
pub fn facts_of(index: u64, verdict: &Verdict) -> CaseFacts {
    CaseFacts {
        index,
        outcome: verdict.outcome,
        dtype: verdict.dtype,
        largest: verdict.largest,
        compared: verdict.elements.compared,
        rejected: verdict.discrimination.rejected.clone(),
        accepted: verdict.discrimination.accepted.clone(),
        not_checked: verdict.not_checked.clone(),
        message: verdict.message.clone(),
        left_out: None,
        within_bound: None,
    }
}

/// A case in short.
pub fn summary_of(verdict: &ValidationResult) -> CaseSummary {
    CaseSummary {
        outcome: verdict.outcome,
        max_abs_diff: verdict.largest.max_abs_diff,
        max_ulp_diff: verdict.largest.max_ulp_diff,
        case: verdict.case.clone(),
    }
}
