//! Compiled kernels against a baseline, for people.

use std::fmt::Write;

use gpuemu_model::artifact::{ArtifactComparison, ArtifactStatus, MetricChange};

use super::style::{BAD, GOOD, WARNING, paint};

/// Changes of one entry that are shown.
const SHOWN_CHANGES: usize = 20;

/// The entries of kernels, a line each, with what differs.
pub fn text(artifacts: &[ArtifactComparison]) -> String {
    let names: Vec<String> = artifacts.iter().map(name).collect();
    let width = names.iter().map(String::len).max().unwrap_or(0);
    let mut text = String::new();
    for (comparison, name) in artifacts.iter().zip(&names) {
        // Writing to a string cannot fail.
        let _ = write_entry(&mut text, comparison, name, width);
    }
    text
}

/// The kernel and its entry, where that has another name.
pub fn name(comparison: &ArtifactComparison) -> String {
    match comparison.entry.as_str() {
        "" => comparison.kernel.clone(),
        entry if entry == comparison.kernel => entry.to_string(),
        entry => format!("{} {entry}", comparison.kernel),
    }
}

fn write_entry(text: &mut String, comparison: &ArtifactComparison, name: &str, width: usize) -> std::fmt::Result {
    let (style, word) = match comparison.status {
        ArtifactStatus::Same => (GOOD, "same      "),
        ArtifactStatus::Changed => (WARNING, "changed   "),
        ArtifactStatus::Improved => (GOOD, "improved  "),
        ArtifactStatus::Regressed => (BAD, "REGRESSED "),
        ArtifactStatus::New => (WARNING, "new       "),
        ArtifactStatus::Missing | ArtifactStatus::NotComparable => (BAD, "ERROR     "),
    };
    let constants = match comparison.constants.len() {
        0 => String::new(),
        1 => ", 1 constant differs".to_string(),
        count => format!(", {count} constants differ"),
    };
    let changes = match (comparison.changes.len(), comparison.status) {
        (0, ArtifactStatus::Changed | ArtifactStatus::Same) => ", all counts are equal".to_string(),
        (0, _) => String::new(),
        (1, _) => ", 1 measure differs".to_string(),
        (count, _) => format!(", {count} measures differ"),
    };
    writeln!(text, "  {} {name:width$}  kernel{changes}{constants}", paint(style, word))?;
    for line in comparison.message.iter().flat_map(|message| message.lines()) {
        writeln!(text, "    {line}")?;
    }
    // What is worse is read first, and never left out for what is not.
    let mut changes: Vec<&MetricChange> = comparison.changes.iter().collect();
    changes.sort_by_key(|change| match change.verdict {
        ArtifactStatus::Regressed => 0,
        ArtifactStatus::NotComparable => 1,
        ArtifactStatus::Improved => 2,
        _ => 3,
    });
    for change in changes.iter().take(SHOWN_CHANGES) {
        let verdict = match change.verdict {
            ArtifactStatus::Regressed => "  worse",
            ArtifactStatus::Improved => "  better",
            ArtifactStatus::NotComparable => "  not comparable",
            _ => "",
        };
        writeln!(text, "    {}: {} -> {}{verdict}", change.metric, amount(change.before), amount(change.now))?;
    }
    if changes.len() > SHOWN_CHANGES {
        writeln!(text, "    and {} more; --format json has all of them", changes.len() - SHOWN_CHANGES)?;
    }
    for constant in &comparison.constants {
        writeln!(text, "    constant {}: {} -> {} times", constant.value, constant.before, constant.now)?;
    }
    Ok(())
}

fn amount(value: Option<u64>) -> String {
    value.map_or("not measured".to_string(), |value| value.to_string())
}
