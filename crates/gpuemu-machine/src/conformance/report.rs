//! What came of running a pack.

use gpuemu_model::emulation::AccessFinding;
use serde::Serialize;

/// How a launch did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ConformanceOutcome {
    /// Every bit of every output is as recorded.
    BitEqual,
    /// Every element is within its bound, for what has no exact model or no fixed order.
    WithinBound,
    /// Something is not as recorded, or could not be run.
    Wrong,
    /// It failed as it was recorded to.
    ExpectedError,
    /// It needs instructions of newer chips than the machine runs.
    Skipped,
}

impl ConformanceOutcome {
    pub const ALL: [Self; 5] = [Self::BitEqual, Self::WithinBound, Self::Wrong, Self::ExpectedError, Self::Skipped];

    /// The name used in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::BitEqual => "bit_equal",
            Self::WithinBound => "within_bound",
            Self::Wrong => "wrong",
            Self::ExpectedError => "expected_error",
            Self::Skipped => "skipped",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LaunchResult {
    /// Its name in the pack.
    pub id: String,
    /// The set that it belongs to.
    pub set: String,
    /// The kernel, the family of instructions, or the shape of tiles.
    pub group: String,
    pub outcome: ConformanceOutcome,
    /// What differs first, or why nothing could be compared; empty if all is well.
    pub detail: String,
    /// Elements with other bits than recorded; nothing where none was compared.
    pub mismatches: Option<u64>,
    /// Elements that were compared; nothing where none was.
    pub elements: Option<u64>,
    /// What the checks found.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub findings: Vec<AccessFinding>,
}

/// How many launches did how.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct ConformanceSummary {
    pub launches: u64,
    /// As recorded, bit for bit.
    pub bit_equal: u64,
    pub within_bound: u64,
    pub wrong: u64,
    pub expected_error: u64,
    pub skipped: u64,
    /// Elements that were compared.
    pub elements: u64,
    /// What the checks found, by place.
    pub findings: u64,
}

/// A pack, and how its launches did.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ConformanceReport {
    /// How many did how.
    pub summary: ConformanceSummary,
    /// Each of them, in the order of the pack.
    pub launches: Vec<LaunchResult>,
}

impl ConformanceReport {
    pub(super) fn new(launches: Vec<LaunchResult>) -> Self {
        Self { summary: ConformanceSummary::of(launches.iter()), launches }
    }
}

impl ConformanceSummary {
    /// The summary of some launches.
    pub fn of<'a>(launches: impl Iterator<Item = &'a LaunchResult>) -> Self {
        let mut summary = Self::default();
        for launch in launches {
            summary.launches += 1;
            *(match launch.outcome {
                ConformanceOutcome::BitEqual => &mut summary.bit_equal,
                ConformanceOutcome::WithinBound => &mut summary.within_bound,
                ConformanceOutcome::Wrong => &mut summary.wrong,
                ConformanceOutcome::ExpectedError => &mut summary.expected_error,
                ConformanceOutcome::Skipped => &mut summary.skipped,
            }) += 1;
            summary.elements += launch.elements.unwrap_or_default();
            summary.findings += launch.findings.len() as u64;
        }
        summary
    }
}
