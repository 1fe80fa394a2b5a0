//! Counts what stored cases exercised.

use std::collections::BTreeMap;

use gpuemu_model::Strategy;
use gpuemu_model::finding::Outcome;
use gpuemu_model::report::{StoredRun, ValidationResult};
use gpuemu_tensor::{DType, Layout};
use gpuemu_wire::protocol::OpSummary;
use serde::Serialize;

use super::dimension_class::DimensionClass;

/// What was exercised of a project.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Coverage {
    /// The ops of the project, and others that have results.
    pub ops: Vec<OpCoverage>,
}

/// What was exercised of one op. Counts are of cases; what counts none was never tried.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct OpCoverage {
    pub op: String,
    /// Whether the project's configuration has it.
    pub configured: bool,
    pub cases: u64,
    /// Of them judged: passed or failed.
    pub judged: u64,
    /// Cases whose description is of another version, and of which only the dtype is known.
    pub unread: u64,
    pub dtypes: BTreeMap<DType, u64>,
    /// By dim and class of its size; `...` are the leading dims.
    pub dims: BTreeMap<String, BTreeMap<DimensionClass, u64>>,
    /// By memory layout that some input has.
    pub layouts: BTreeMap<&'static str, u64>,
    /// By how values were chosen.
    pub values: BTreeMap<&'static str, u64>,
    /// Checks that could not be made in the newest run.
    pub not_checked: Vec<String>,
}

/// Ways to choose values that a mixed run draws from.
pub fn strategies() -> impl Iterator<Item = Strategy> {
    let others = [Strategy::Adversarial, Strategy::Default, Strategy::NanInjected];
    Strategy::ALL.into_iter().filter(move |strategy| !others.contains(strategy))
}

impl Coverage {
    /// Counts the results of ops.
    pub fn of(ops: &[OpSummary], results: &[ValidationResult], runs: &[StoredRun]) -> Self {
        let mut found: BTreeMap<&str, OpCoverage> = BTreeMap::new();
        for op in ops {
            let dtypes = op.dtypes.iter().map(|dtype| (*dtype, 0)).collect();
            found.insert(&op.name, OpCoverage { configured: true, dtypes, ..OpCoverage::blank(&op.name) });
        }
        for result in results {
            found.entry(&result.op).or_insert_with(|| OpCoverage::blank(&result.op)).add(result);
        }
        for run in runs {
            let op = found.entry(&run.op.op).or_insert_with(|| OpCoverage::blank(&run.op.op));
            op.not_checked.clone_from(&run.op.not_checked);
        }
        Self { ops: found.into_values().collect() }
    }
}

impl OpCoverage {
    fn blank(op: &str) -> Self {
        Self {
            op: op.to_string(),
            layouts: Layout::ALL.into_iter().map(|layout| (layout.name(), 0)).collect(),
            values: strategies().map(|strategy| (strategy.name(), 0)).collect(),
            ..Self::default()
        }
    }

    fn add(&mut self, result: &ValidationResult) {
        self.cases += 1;
        self.judged += u64::from(matches!(result.outcome, Outcome::Passed | Outcome::Failed));
        *self.dtypes.entry(result.dtype).or_default() += 1;
        let case = &result.case;
        // What an older gpuemu kept of a case does not always say what it was drawn from.
        if case.schema.is_empty() {
            self.unread += 1;
            return;
        }
        *self.values.entry(case.values.name()).or_default() += 1;
        let mut layouts: Vec<Layout> = case.layouts.iter().map(|(_, layout)| *layout).collect();
        if layouts.is_empty() {
            layouts.push(Layout::Contiguous);
        }
        layouts.sort_unstable_by_key(|layout| layout.name());
        layouts.dedup();
        for layout in layouts {
            *self.layouts.entry(layout.name()).or_default() += 1;
        }
        let leading = case.sizes.batch.iter().map(|size| ("...", *size));
        let named = case.sizes.named.iter().map(|(name, size)| (name.as_str(), *size));
        let mut seen: Vec<(&str, DimensionClass)> = Vec::new();
        for (name, size) in leading.chain(named) {
            let classes = self
                .dims
                .entry(name.to_string())
                .or_insert_with(|| DimensionClass::ALL.into_iter().map(|class| (class, 0)).collect());
            for class in DimensionClass::ALL.into_iter().filter(|class| class.holds(size)) {
                // Several leading dims of one class are still one case.
                if !seen.contains(&(name, class)) {
                    *classes.entry(class).or_default() += 1;
                }
            }
            seen.extend(DimensionClass::ALL.into_iter().filter(|class| class.holds(size)).map(|class| (name, class)));
        }
    }
}
