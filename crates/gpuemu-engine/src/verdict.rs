//! The verdict on one case: what was checked, what was found, and what could not be checked.

use serde::Serialize;

pub use gpuemu_model::finding::{BugClass, Check, ElementCounts, Finding, LargestErrors, Outcome, WorstElement};

use crate::case::CaseDescriptor;
use crate::oracle::decoy::Decoy;
use crate::oracle::tolerance::Tolerance;
use crate::runner::RunnerDescription;

/// What a case could tell apart.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Discrimination {
    /// Wrong outputs that were rejected, as they should be.
    pub rejected: Vec<Decoy>,
    /// Wrong outputs that would have passed.
    pub accepted: Vec<Decoy>,
}

impl Discrimination {
    /// Whether some decoy should have been rejected and none was. The scaled one does not count: it
    /// is made to lie outside of any tolerance.
    pub fn is_weak(&self) -> bool {
        !self.accepted.is_empty() && self.rejected.iter().all(|decoy| *decoy == Decoy::Scaled)
    }
}

/// The verdict on one case.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Verdict {
    pub case: CaseDescriptor,
    pub outcome: Outcome,
    /// What is wrong, the gravest first.
    pub findings: Vec<Finding>,
    /// Why nothing could be said, or what went wrong, where that is so.
    pub undetermined: Option<String>,
    /// Elements by how they were judged.
    pub elements: ElementCounts,
    pub tolerance: Tolerance,
    /// Whether some element came close to what is allowed.
    pub near: bool,
    pub errors: LargestErrors,
    /// What the case could tell apart.
    pub discrimination: Discrimination,
    /// Extra cases that were run for more evidence.
    pub escalated: usize,
    /// The extra case that failed, if the case itself did not.
    pub failing_case: Option<Box<CaseDescriptor>>,
    /// What produced the output.
    pub runner: RunnerDescription,
    /// Checks that this runner does not allow.
    pub not_checked: Vec<&'static str>,
}

impl Verdict {
    /// Whether a check fired.
    pub fn failed(&self) -> bool {
        self.outcome == Outcome::Failed
    }

    pub fn finding(&self) -> Option<&Finding> {
        self.findings.first()
    }

    /// The reason of failure, which a minimised case must share.
    pub fn reason(&self) -> Option<Check> {
        self.finding().map(|finding| finding.check)
    }
}
