//! What GitHub shows beside the log of a workflow: annotations, and the summary of a step.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::Path;

use gpuemu_model::artifact::Severity;
use gpuemu_model::report::RunReport;

use super::issues::{Issue, Weight, issues};
use super::{kernels, markdown};
use crate::session::note;

/// Annotations of a kind that a step may have; GitHub drops the others without a word.
const MOST_OF_A_KIND: usize = 10;

/// Bytes of a step's summary; GitHub refuses all of a longer one.
const SUMMARY_BYTES: u64 = 1024 * 1024;

/// Tells GitHub of a run, where one of its workflows runs it. A summary that cannot be written is said and fails nothing:
/// the result is elsewhere.
pub fn tell(report: &RunReport) {
    let variable = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    if variable("GITHUB_ACTIONS").is_none_or(|value| value != "true") {
        return;
    }
    for line in annotations(&issues(report)) {
        note(&line);
    }
    if let Some(path) = variable("GITHUB_STEP_SUMMARY")
        && let Err(error) = append(Path::new(&path), &markdown::run(report))
    {
        note(&format!("the summary of the step cannot be written to {}: {error}", Path::new(&path).display()));
    }
}

/// Workflow commands, the worst issues first.
fn annotations(issues: &[Issue]) -> Vec<String> {
    let mut lines = Vec::new();
    for (severity, command) in [(Severity::Error, "error"), (Severity::Warning, "warning")] {
        let mine: Vec<&Issue> = issues.iter().filter(|issue| issue.severity == severity).collect();
        lines.extend(mine.iter().take(MOST_OF_A_KIND).map(|issue| annotation(command, issue)));
        if let Some(more @ 1..) = mine.len().checked_sub(MOST_OF_A_KIND) {
            let counted = kernels::counted(more as u64, &format!("more {command}"), &format!("more {command}s"));
            let words = format!("{counted} in the report: a step shows {MOST_OF_A_KIND} of a kind");
            lines.push(format!("::notice title=gpuemu::{}", data(&words)));
        }
    }
    lines
}

fn annotation(command: &str, issue: &Issue) -> String {
    let mut properties = Vec::new();
    if let Some(place) = issue.places.first() {
        properties.push(format!("file={}", property(&place.file)));
        properties.extend(place.line.map(|line| format!("line={line}")));
        properties.extend(place.column.map(|column| format!("col={column}")));
    }
    let word = match issue.weight {
        Weight::Failed => "failed",
        Weight::Error => "could not be judged",
        Weight::Unfinished => "unfinished",
        Weight::Remark => "remark",
    };
    let name = match issue.subject.name() {
        "" => "gpuemu".to_string(),
        name => format!("gpuemu {name}"),
    };
    properties.push(format!("title={}", property(&format!("{name}: {word}"))));
    let mut lines = vec![issue.summary.clone()];
    lines.extend(issue.details.iter().cloned());
    lines.extend(issue.replay.iter().cloned());
    format!("::{command} {}::{}", properties.join(","), data(&lines.join("\n")))
}

/// Text after the last `::` of a workflow command.
fn data(text: &str) -> String {
    text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

/// The value of a property of a workflow command.
fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}

/// Adds to a file, unless that would make it longer than GitHub takes.
fn append(path: &Path, text: &str) -> std::io::Result<()> {
    let mut file = OpenOptions::new().append(true).create(true).open(path)?;
    let length = file.metadata()?.len();
    if length + text.len() as u64 + 1 > SUMMARY_BYTES {
        return Err(std::io::Error::other(format!(
            "it has {length} bytes already, of {SUMMARY_BYTES} that it may have"
        )));
    }
    file.write_all(text.as_bytes())?;
    file.write_all(b"\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::issues::Subject;
    use crate::report::places::Place;
    use crate::report::rules::IssueRule;

    fn issue(severity: Severity, summary: &str) -> Issue {
        let place = Place { file: "a,b:c.toml".to_string(), line: Some(7), column: None, what: String::new() };
        Issue {
            rule: IssueRule::failed(),
            severity,
            weight: Weight::Failed,
            subject: Subject::Op("soft:max".to_string()),
            summary: summary.to_string(),
            details: vec!["100 % wrong".to_string()],
            replay: Some("gpuemu reproduce 7".to_string()),
            places: vec![place],
            related: Vec::new(),
            accepted: None,
            failed: None,
        }
    }

    #[test]
    fn an_annotation_is_one_line_whatever_it_says() {
        assert_eq!(
            annotations(&[issue(Severity::Error, "x\r\n::stop-commands::y")]),
            [
                "::error file=a%2Cb%3Ac.toml,line=7,title=gpuemu soft%3Amax%3A failed::x%0D%0A::stop-commands::y%0A100 %25 \
             wrong%0Agpuemu reproduce 7"
            ]
        );
    }

    #[test]
    fn what_github_would_drop_is_counted() {
        let mut all: Vec<Issue> = (0..12).map(|number| issue(Severity::Error, &number.to_string())).collect();
        all.extend((0..3).map(|number| issue(Severity::Warning, &number.to_string())));
        all.push(issue(Severity::Note, "not shown"));
        let lines = annotations(&all);
        let count = |start: &str| lines.iter().filter(|line| line.starts_with(start)).count();
        assert_eq!((count("::error "), count("::warning "), count("::notice ")), (10, 3, 1));
        assert!(
            lines
                .contains(&"::notice title=gpuemu::2 more errors in the report: a step shows 10 of a kind".to_string())
        );
    }

    #[test]
    fn a_summary_grows_and_never_beyond_what_is_taken() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("summary.md");
        append(&path, "one").unwrap();
        append(&path, "two").unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "one\ntwo\n");
        assert!(append(&path, &"x".repeat(SUMMARY_BYTES as usize)).is_err());
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "one\ntwo\n");
    }
}
