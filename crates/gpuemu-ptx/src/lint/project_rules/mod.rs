//! Rules of a project's own, from a TOML file.
//!
//! ```toml
//! [[rules]]
//! name = "no-global-atomics"
//! severity = "error"              # default "warning"
//! pattern = "atom.global"         # or: metric = "instructions.tensor_core"
//! threshold = 0                   # the most that is allowed; 0 for a pattern that says neither
//! minimum = 1                     # the least that is wanted
//! message = "atomics make results differ from run to run"
//! explanation = "why, and what to do instead"
//! kernels = ["matmul_*"]          # names of kernels or entries; all if left out
//! ```

mod metric;
mod read;

use gpuemu_model::artifact::{EntryMetrics, KernelArtifact, Severity};

use super::figures::Figures;
use super::glob;
use super::patterns::{Pattern, first_match};
use super::report::{Finder, Place, Report};
use crate::code::Code;

pub use metric::{Metric, metric_names};
pub use read::{parse_rules, read_rules};

/// What a rule counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Counted {
    Pattern(Pattern),
    Metric(Metric),
}

/// A rule of the project's own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProjectRule {
    pub name: String,
    /// How grave it is.
    pub severity: Severity,
    pub counted: Counted,
    /// The most that is allowed.
    pub threshold: Option<u64>,
    /// The least that is wanted.
    pub minimum: Option<u64>,
    /// What is shown, with the figure.
    pub message: String,
    /// Why, and what to do.
    pub explanation: Option<String>,
    /// Names of kernels or entries that it is for, with `*` for any characters; all if empty.
    pub kernels: Vec<String>,
}

impl ProjectRule {
    fn concerns(&self, kernel: &str, entry: &str) -> bool {
        let named = |name: &String| glob::matches(name, kernel) || glob::matches(name, entry);
        self.kernels.is_empty() || self.kernels.iter().any(named)
    }

    fn figures(&self, artifact: &KernelArtifact, entry: &EntryMetrics) -> Figures {
        match &self.counted {
            Counted::Metric(metric) => metric.of(artifact, entry),
            Counted::Pattern(pattern) => pattern.count(artifact, entry),
        }
    }

    fn subject(&self) -> String {
        match &self.counted {
            Counted::Pattern(pattern) => format!("`{pattern}`"),
            Counted::Metric(metric) => metric.name().to_string(),
        }
    }
}

/// Checks the rules of the project for an entry.
pub(super) fn check<'s, 'm, 'a>(
    rules: &'s [ProjectRule],
    artifact: &KernelArtifact,
    entry: &EntryMetrics,
    functions: &[Code<'m, 'a>],
    place: Place<'m, 'a>,
    report: &mut Report<'s, 'a>,
) {
    for rule in rules.iter().filter(|rule| rule.concerns(&artifact.kernel, &entry.entry)) {
        let figures = rule.figures(artifact, entry);
        for why in &figures.missing {
            report.not_checked(&rule.name, format!("{}: {why}", rule.subject()));
        }
        let beyond = figures.largest().zip(rule.threshold).filter(|((_, figure), most)| figure > most);
        let short = figures.smallest().zip(rule.minimum).filter(|((_, figure), least)| figure < least);
        let wrong = [beyond.map(|found| (found, "at most")), short.map(|found| (found, "at least"))];
        for (((architecture, figure), bound), words) in wrong.into_iter().flatten() {
            let on = if architecture.is_empty() { String::new() } else { format!(" on {architecture}") };
            let message = format!("{} ({} is {figure}{on}, {words} {bound} is wanted)", rule.message, rule.subject());
            let finder = Finder { name: &rule.name, severity: rule.severity, heuristic: false };
            let found = match &rule.counted {
                Counted::Pattern(pattern) => first_match(pattern, functions),
                Counted::Metric(_) => None,
            };
            report.found(finder, found.unwrap_or(place), message);
        }
    }
}
