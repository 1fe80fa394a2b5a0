//! Whether the cases of an op could have failed at all: an op and dtype for which a plainly wrong
//! output was never rejected is weak, and a weak pass is no pass.

use std::collections::{BTreeMap, BTreeSet};

use gpuemu_tensor::DType;
use serde::Serialize;

use super::decoy::Decoy;
use crate::verdict::{Discrimination, Outcome, Verdict};

/// What the verdicts on one op, dtype by dtype, could tell apart.
#[derive(Debug, Clone, Default)]
pub struct Strength {
    dtypes: BTreeMap<DType, Seen>,
}

#[derive(Debug, Clone, Default)]
struct Seen {
    rejected: BTreeSet<Decoy>,
    accepted: BTreeSet<Decoy>,
    judged: bool,
    failed: bool,
}

/// A dtype whose passes prove little, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Weakness {
    pub dtype: DType,
    /// Wrong outputs that no case rejected.
    pub never_rejected: Vec<Decoy>,
    pub reason: &'static str,
}

impl Strength {
    /// Takes a verdict into account.
    pub fn add(&mut self, verdict: &Verdict) {
        let Discrimination { rejected, accepted } = &verdict.discrimination;
        self.see(verdict.case.dtype, rejected, accepted, verdict.outcome, verdict.elements.compared);
    }

    /// Takes a case into account: its decoys, how it ended, and how many elements were compared.
    pub fn see(&mut self, dtype: DType, rejected: &[Decoy], accepted: &[Decoy], outcome: Outcome, compared: usize) {
        let seen = self.dtypes.entry(dtype).or_default();
        seen.rejected.extend(rejected);
        seen.accepted.extend(accepted);
        seen.judged |= outcome == Outcome::Passed && compared > 0;
        // A failure always counts, whatever the decoys say.
        seen.failed |= outcome == Outcome::Failed;
    }

    /// What two sets of verdicts could tell apart together.
    pub fn join(mut self, other: Self) -> Self {
        for (dtype, added) in other.dtypes {
            let seen = self.dtypes.entry(dtype).or_default();
            seen.rejected.extend(added.rejected);
            seen.accepted.extend(added.accepted);
            seen.judged |= added.judged;
            seen.failed |= added.failed;
        }
        self
    }

    /// The dtypes that are weak.
    pub fn weaknesses(&self) -> Vec<Weakness> {
        let mut found = Vec::new();
        for (dtype, seen) in &self.dtypes {
            let never: Vec<Decoy> = seen.accepted.difference(&seen.rejected).copied().collect();
            let constant = seen.judged && seen.accepted.is_empty() && seen.rejected.is_empty();
            if seen.failed || (never.is_empty() && !constant) {
                continue;
            }
            let reason = if constant {
                "no wrong output could be told from the right one: outputs are constant or empty"
            } else {
                "tolerance too loose: a wrong output passed in every case"
            };
            found.push(Weakness { dtype: *dtype, never_rejected: never, reason });
        }
        found
    }
}
