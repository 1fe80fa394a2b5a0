//! The verdict on one case: the result that travels from here to the page, and what only adding up needs.

use std::ops::{Deref, DerefMut};

pub use gpuemu_model::finding::{BugClass, Check, ElementCounts, Finding, LargestErrors, Outcome, WorstElement};
use gpuemu_model::report::ValidationResult;

use crate::oracle::decoy::Decoy;

/// What a case could tell apart.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
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

/// The verdict on one case. It reads as the result that it is.
#[derive(Debug, Clone, PartialEq)]
pub struct Verdict {
    pub result: ValidationResult,
    /// Whether some element came close to what is allowed.
    pub near: bool,
    pub discrimination: Discrimination,
    /// Extra cases that were run for more evidence.
    pub escalated: usize,
}

impl Deref for Verdict {
    type Target = ValidationResult;

    fn deref(&self) -> &ValidationResult {
        &self.result
    }
}

impl DerefMut for Verdict {
    fn deref_mut(&mut self) -> &mut ValidationResult {
        &mut self.result
    }
}
