//! Merging of files: what the first has goes before what the second has, table by table.

use super::tables::*;

/// Fills the fields that are missing from a table of lower precedence.
macro_rules! fill {
    ($upper:expr, $lower:expr, $($field:ident),+) => {
        $( if $upper.$field.is_none() { $upper.$field = $lower.$field; } )+
    };
}

/// Merges an optional table with one of lower precedence.
fn merge_tables<T>(upper: &mut Option<T>, lower: Option<T>, fill: impl FnOnce(&mut T, T)) {
    match (upper.as_mut(), lower) {
        (Some(upper), Some(lower)) => fill(upper, lower),
        (None, lower) => *upper = lower,
        (Some(_), None) => {}
    }
}

impl ConfigFile {
    /// This file over one of lower precedence. Lists are taken whole, not merged.
    pub(super) fn over(mut self, lower: ConfigFile) -> ConfigFile {
        fill!(self, lower, ops, kernels, expected_failures);
        merge_tables(&mut self.project, lower.project, |upper, lower| {
            fill!(upper, lower, name, version, framework);
        });
        merge_tables(&mut self.validation, lower.validation, |upper, lower| {
            fill!(upper, lower, dtypes, check_nan, check_inf, seed, values);
            merge_tables(&mut upper.tolerances, lower.tolerances, |upper, lower| {
                for (dtype, pair) in lower {
                    upper.entry(dtype).or_insert(pair);
                }
            });
        });
        merge_tables(&mut self.policies, lower.policies, |upper, lower| {
            fill!(upper, lower, fail_on_regression, warn_threshold, regression_threshold);
        });
        merge_tables(&mut self.lint, lower.lint, |upper, lower| {
            fill!(upper, lower, rule_files, architectures, severity, allow, fail_on_unchecked);
        });
        merge_tables(&mut self.ci, lower.ci, merge_ci);
        merge_tables(&mut self.daemon, lower.daemon, |upper, lower| {
            fill!(upper, lower, log_level, idle_timeout, script_timeout, workers);
            fill!(upper, lower, script_memory_megabytes, message_megabytes);
        });
        merge_tables(&mut self.storage, lower.storage, |upper, lower| {
            fill!(upper, lower, keep_days, snapshot_bytes);
        });
        self
    }
}

fn merge_ci(upper: &mut CiTable, mut lower: CiTable) {
    // Two spellings of one setting: the upper file's wins whichever it used.
    if upper.parallel.is_some() || upper.parallel_jobs.is_some() {
        (lower.parallel, lower.parallel_jobs) = (None, None);
    }
    let quick_dtypes = upper.quick_dtypes.is_some() || upper.quick.as_ref().is_some_and(|quick| quick.dtypes.is_some());
    if quick_dtypes {
        lower.quick_dtypes = None;
        if let Some(quick) = &mut lower.quick {
            quick.dtypes = None;
        }
    }
    fill!(upper, lower, quick_dtypes, thorough_timeout, parallel_jobs, parallel, fuzz_iterations);
    merge_tables(&mut upper.quick, lower.quick, |upper, lower| {
        fill!(upper, lower, fuzz_iterations, dtypes);
    });
}
