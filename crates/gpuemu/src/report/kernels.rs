//! Compiled kernels in reports for people: how each did, and what the linter says.

use std::fmt::Write;

use gpuemu_model::artifact::{KernelReport, KernelStatus, LintFinding, NotChecked, Severity};

use super::style::{BAD, GOOD, WARNING, paint};

const INDENT: &str = "       ";

/// Each kernel with what was found in it, from a severity on.
pub fn text(kernels: &[KernelReport], least: Severity) -> String {
    let width = kernels.iter().map(|kernel| kernel.kernel.len()).max().unwrap_or(0);
    let mut text = String::new();
    for kernel in kernels {
        // Writing to a string cannot fail.
        let _ = write_kernel(&mut text, kernel, width, least);
    }
    text
}

fn write_kernel(text: &mut String, kernel: &KernelReport, width: usize, least: Severity) -> std::fmt::Result {
    let (style, word) = match kernel.status {
        KernelStatus::Passed => (GOOD, "PASS "),
        KernelStatus::Failed => (BAD, "FAIL "),
        KernelStatus::Error => (BAD, "ERROR"),
    };
    write!(text, "{}  {:width$}  kernel", paint(style, word), kernel.kernel)?;
    if let Some(artifact) = &kernel.artifact {
        let entries = counted(artifact.entries.len() as u64, "entry", "entries");
        let found = found(kernel).map_or(String::new(), |found| format!("; {found}"));
        write!(text, ", {entries}, PTX for {}, {}{found}", artifact.target, artifact.producer)?;
    }
    text.push('\n');
    for line in kernel.message.iter().flat_map(|message| message.lines()) {
        writeln!(text, "{INDENT}{line}")?;
    }
    for finding in kernel.lint.findings.iter().filter(|finding| finding.severity >= least) {
        write_finding(text, kernel, finding)?;
    }
    let silenced = kernel.lint.silenced.iter();
    let silenced: Vec<String> = silenced.map(|(rule, count)| format!("{rule} ({count})")).collect();
    if !silenced.is_empty() {
        writeln!(text, "{INDENT}silenced: {}", silenced.join(", "))?;
    }
    for (why, rules) in by_reason(&kernel.lint.not_checked) {
        writeln!(text, "{INDENT}not checked: {}: {why}", rules.join(", "))?;
    }
    Ok(())
}

fn write_finding(text: &mut String, kernel: &KernelReport, finding: &LintFinding) -> std::fmt::Result {
    let style = match finding.severity {
        Severity::Error => BAD,
        Severity::Warning | Severity::Note => WARNING,
    };
    let heuristic = if finding.heuristic { ", a heuristic" } else { "" };
    let head = format!("{}[{}{heuristic}]", finding.severity.name(), finding.rule);
    let mut lines = finding.message.trim_end().lines();
    writeln!(text, "{INDENT}{} {}: {}", paint(style, &head), finding.entry, lines.next().unwrap_or_default())?;
    for line in lines {
        writeln!(text, "{INDENT}  {line}")?;
    }
    if let Some(place) = place(kernel, finding) {
        writeln!(text, "{INDENT}  at {place}")?;
    }
    Ok(())
}

/// Where a finding is: in the PTX, and in the source that this was compiled from.
fn place(kernel: &KernelReport, finding: &LintFinding) -> Option<String> {
    let source = kernel.artifact.as_ref().map_or("", |artifact| artifact.source.as_str());
    let line = finding.line.map(|line| {
        let column = finding.column.map_or(String::new(), |column| format!(":{column}"));
        let file = if source.contains(".py:") || source.ends_with(".cu") { "PTX line " } else { source };
        let colon = if file == source { ":" } else { "" };
        format!("{file}{colon}{line}{column}")
    });
    let origin = finding.origin.as_ref().map(|origin| format!("from {}:{}", origin.file, origin.line));
    let parts: Vec<String> = line.into_iter().chain(origin).collect();
    (!parts.is_empty()).then(|| parts.join(", "))
}

/// How many findings there are of each severity; none if there are none.
fn found(kernel: &KernelReport) -> Option<String> {
    let parts: Vec<String> = [Severity::Error, Severity::Warning, Severity::Note]
        .into_iter()
        .filter(|severity| kernel.lint.count(*severity) > 0)
        .map(|severity| counted(kernel.lint.count(severity) as u64, severity.name(), &format!("{}s", severity.name())))
        .collect();
    (!parts.is_empty()).then(|| parts.join(", "))
}

/// Rules that could not be checked, by why.
pub fn by_reason(not_checked: &[NotChecked]) -> Vec<(&str, Vec<&str>)> {
    let mut reasons: Vec<(&str, Vec<&str>)> = Vec::new();
    for NotChecked { rule, why } in not_checked {
        match reasons.iter_mut().find(|(known, _)| *known == why.as_str()) {
            Some((_, rules)) if rules.contains(&rule.as_str()) => {}
            Some((_, rules)) => rules.push(rule),
            None => reasons.push((why, vec![rule])),
        }
    }
    reasons
}

/// How many kernels did how.
pub fn summary(kernels: &[KernelReport]) -> String {
    let count = |status: KernelStatus| kernels.iter().filter(|kernel| kernel.status == status).count();
    let mut parts = vec![format!("{} of {} kernels passed", count(KernelStatus::Passed), kernels.len())];
    for (status, word) in [(KernelStatus::Failed, "failed"), (KernelStatus::Error, "could not be judged")] {
        if count(status) > 0 {
            parts.push(format!("{} {word}", count(status)));
        }
    }
    parts.join(", ")
}

/// A number and what it counts.
pub fn counted(count: u64, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}
