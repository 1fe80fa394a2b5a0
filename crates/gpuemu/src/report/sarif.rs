//! Reports for services that show findings beside the code: SARIF 2.1.0.

use std::collections::BTreeMap;

use gpuemu_model::report::{Conclusion, RunReport};
use gpuemu_run::sources::sha256;
use serde::Serialize;

use super::issues::{FailedCheck, Issue, Subject, Weight, issues, not_checked};
use super::places::Place;
use super::rules::IssueRule;
use crate::expected_error::ExpectedError;

/// The schema that a log names.
const SCHEMA: &str = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json";

/// What files are relative to.
const ROOT: &str = "%SRCROOT%";

/// Results of a run that code-scanning services take; what is beyond is counted in a notification.
const MOST_RESULTS: usize = 25_000;

/// Places of a result that they take.
const MOST_PLACES: usize = 20;

/// The report on a run as SARIF.
pub fn run(report: &RunReport) -> Result<String, ExpectedError> {
    log(report, MOST_RESULTS)
}

fn log(report: &RunReport, most: usize) -> Result<String, ExpectedError> {
    let issues = issues(report);
    let mut rules: Vec<IssueRule> = issues.iter().map(|issue| issue.rule.clone()).collect();
    rules.sort();
    rules.dedup();
    let known_by = fingerprints(&issues);
    let results = issues.iter().zip(&known_by).take(most).map(|(issue, known_by)| result(issue, &rules, known_by));
    let results = results.collect();
    let mut notifications: Vec<Notification> =
        issues.iter().filter(|issue| issue.weight == Weight::Error).map(unjudged).collect();
    let notes = not_checked(report).into_iter().map(|what| format!("not checked: {what}"));
    notifications.extend(notes.map(|text| Notification::of_run("note", text)));
    if let Some(more @ 1..) = issues.len().checked_sub(most) {
        let text =
            format!("{more} more results are not in this log, which has at most {most}; the JSON report has all");
        notifications.push(Notification::of_run("warning", text));
    }
    let conclusion = report.conclusion();
    let exit_code = super::exit_code_of(report);
    let log = Log {
        schema: SCHEMA,
        version: "2.1.0",
        runs: [Run {
            tool: Tool {
                driver: Driver {
                    name: "gpuemu",
                    semantic_version: &report.gpuemu,
                    short_description: Text::of("Catches silently wrong GPU kernels without a GPU."),
                    rules: rules.iter().map(Rule::of).collect(),
                },
            },
            automation_details: AutomationDetails { id: format!("gpuemu/{}/", report.project) },
            original_uri_base_ids: BTreeMap::from([(
                ROOT,
                BaseLocation { description: Text::of("The root of the repository, or of a project that is in none.") },
            )]),
            invocations: [Invocation {
                execution_successful: conclusion != Conclusion::Error,
                exit_code,
                exit_code_description: match conclusion {
                    Conclusion::Passed => "everything passed",
                    Conclusion::Failed => "a validation failed, regressed or is unfinished",
                    Conclusion::Error => "something could not be judged",
                },
                tool_execution_notifications: notifications,
            }],
            results,
            properties: RunProperties {
                project: &report.project,
                mode: &report.mode,
                seed: report.seed.to_string(),
                passed: conclusion == Conclusion::Passed,
                ops: report.ops.len(),
                cases: report.cases(),
                kernels: report.kernels.len(),
            },
        }],
    };
    let mut text = serde_json::to_string_pretty(&log)?;
    text.push('\n');
    Ok(text)
}

fn result(issue: &Issue, rules: &[IssueRule], fingerprint: &str) -> ResultObject {
    let (location, others) = match issue.places.split_first() {
        Some((first, others)) => (vec![Location::of(first)], others),
        None => (Vec::new(), &[][..]),
    };
    let related = others.iter().chain(&issue.related).take(MOST_PLACES);
    ResultObject {
        rule_id: issue.rule.id.clone(),
        rule_index: rules.binary_search(&issue.rule).unwrap_or_default(),
        level: issue.severity.name(),
        message: Text::of(&message(issue)),
        locations: location,
        related_locations: related
            .enumerate()
            .map(|(place, one)| Location { id: Some(place + 1), ..Location::of(one) })
            .collect(),
        // Services tell alerts apart by the second alone, and would make one of several issues on one line.
        partial_fingerprints: BTreeMap::from([
            ("gpuemuIssue/v1", fingerprint.to_string()),
            ("primaryLocationLineHash", format!("{}:1", fingerprint.get(..16).unwrap_or_default())),
        ]),
        suppressions: issue
            .accepted
            .iter()
            .map(|why| Suppression { kind: "external", justification: why.clone() })
            .collect(),
        properties: ResultProperties {
            op: matches!(issue.subject, Subject::Op(_)).then(|| issue.subject.name().to_string()),
            kernel: matches!(issue.subject, Subject::Kernel(_)).then(|| issue.subject.name().to_string()),
            replay: issue.replay.clone(),
            failed: issue.failed.clone(),
        },
    }
}

/// An issue in words. `[words](number)` would be a link to a related place.
fn message(issue: &Issue) -> String {
    let mut lines = vec![issue.title()];
    lines.extend(issue.details.iter().cloned());
    lines.extend(issue.replay.iter().map(|replay| format!("replay: {replay}")));
    lines.extend(issue.accepted.iter().cloned());
    lines.join("\n").replace("](", "] (")
}

fn unjudged(issue: &Issue) -> Notification {
    Notification {
        level: "error",
        message: Text::of(&message(issue)),
        locations: issue.places.first().map(Location::of).into_iter().collect(),
    }
}

/// What each issue is known by in the next run: its rule, subject, dtype and file, without a check its words, and which of
/// the issues that share all that it is, from the top of the file. Lines, seeds and figures change from run to run.
fn fingerprints(issues: &[Issue]) -> Vec<String> {
    type LineAndColumn = (Option<u64>, Option<u64>);
    let mut alike: BTreeMap<String, Vec<(LineAndColumn, usize)>> = BTreeMap::new();
    for (index, issue) in issues.iter().enumerate() {
        let subject = match &issue.subject {
            Subject::Op(name) => format!("op {name}"),
            Subject::Kernel(name) => format!("kernel {name}"),
            Subject::Run => "run".to_string(),
        };
        let words = match &issue.failed {
            Some(failed) => failed.dtype.to_string(),
            None => issue.summary.replace(|letter: char| letter.is_ascii_digit(), ""),
        };
        let place = issue.places.first();
        let file = place.map_or("", |place| place.file.as_str());
        let known_by = [issue.rule.id.as_str(), &subject, &words, file].join("\0");
        let at = place.map_or((None, None), |place| (place.line, place.column));
        alike.entry(known_by).or_default().push((at, index));
    }
    let mut fingerprints = vec![String::new(); issues.len()];
    for (known_by, mut group) in alike {
        group.sort_unstable();
        for (place, (_, index)) in group.into_iter().enumerate() {
            fingerprints[index] = sha256(format!("{known_by}\0{place}").as_bytes());
        }
    }
    fingerprints
}

/// A path as a relative reference: what is not plainly a letter of a path is escaped.
fn uri(file: &str) -> String {
    let mut uri = String::with_capacity(file.len());
    for byte in file.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'/' => uri.push(char::from(byte)),
            _ => uri.push_str(&format!("%{byte:02X}")),
        }
    }
    uri
}

#[derive(Serialize)]
struct Log<'a> {
    #[serde(rename = "$schema")]
    schema: &'static str,
    version: &'static str,
    runs: [Run<'a>; 1],
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Run<'a> {
    tool: Tool<'a>,
    automation_details: AutomationDetails,
    original_uri_base_ids: BTreeMap<&'static str, BaseLocation>,
    invocations: [Invocation; 1],
    results: Vec<ResultObject>,
    properties: RunProperties<'a>,
}

#[derive(Serialize)]
struct Tool<'a> {
    driver: Driver<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Driver<'a> {
    name: &'static str,
    semantic_version: &'a str,
    short_description: Text,
    rules: Vec<Rule>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Rule {
    id: String,
    short_description: Text,
    full_description: Text,
    help: Text,
}

impl Rule {
    fn of(rule: &IssueRule) -> Self {
        Self {
            id: rule.id.clone(),
            short_description: Text::of(&rule.summary),
            full_description: Text::of(&rule.summary),
            help: Text::of(&rule.help),
        }
    }
}

#[derive(Serialize)]
struct AutomationDetails {
    id: String,
}

#[derive(Serialize)]
struct BaseLocation {
    description: Text,
}

#[derive(Serialize)]
struct Text {
    text: String,
}

impl Text {
    fn of(text: &str) -> Self {
        Self { text: text.to_string() }
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Invocation {
    execution_successful: bool,
    exit_code: u8,
    exit_code_description: &'static str,
    tool_execution_notifications: Vec<Notification>,
}

#[derive(Serialize)]
struct Notification {
    level: &'static str,
    message: Text,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    locations: Vec<Location>,
}

impl Notification {
    fn of_run(level: &'static str, text: String) -> Self {
        Self { level, message: Text { text }, locations: Vec::new() }
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ResultObject {
    rule_id: String,
    rule_index: usize,
    level: &'static str,
    message: Text,
    locations: Vec<Location>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    related_locations: Vec<Location>,
    partial_fingerprints: BTreeMap<&'static str, String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    suppressions: Vec<Suppression>,
    properties: ResultProperties,
}

#[derive(Serialize)]
struct Suppression {
    kind: &'static str,
    justification: String,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Location {
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<usize>,
    physical_location: PhysicalLocation,
    message: Text,
}

impl Location {
    fn of(place: &Place) -> Self {
        Self {
            id: None,
            physical_location: PhysicalLocation {
                artifact_location: ArtifactLocation { uri: uri(&place.file), uri_base_id: ROOT },
                // Services want a line: all of a file is shown at its first.
                region: Region { start_line: place.line.unwrap_or(1).max(1), start_column: place.column },
            },
            message: Text::of(&place.what.replace("](", "] (")),
        }
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct PhysicalLocation {
    artifact_location: ArtifactLocation,
    region: Region,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ArtifactLocation {
    uri: String,
    uri_base_id: &'static str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Region {
    start_line: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    start_column: Option<u64>,
}

#[derive(Serialize)]
struct ResultProperties {
    #[serde(skip_serializing_if = "Option::is_none")]
    op: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    kernel: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    replay: Option<String>,
    #[serde(flatten)]
    failed: Option<FailedCheck>,
}

#[derive(Serialize)]
struct RunProperties<'a> {
    project: &'a str,
    mode: &'a str,
    seed: String,
    passed: bool,
    ops: usize,
    cases: u64,
    kernels: usize,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_result_is_dropped_without_a_word() {
        let report: RunReport = serde_json::from_str(include_str!("../../tests/golden/report.json")).unwrap();
        let whole: serde_json::Value = serde_json::from_str(&run(&report).unwrap()).unwrap();
        let all = whole["runs"][0]["results"].as_array().unwrap();
        let cut: serde_json::Value = serde_json::from_str(&log(&report, 2).unwrap()).unwrap();
        // The worst are those that are kept.
        assert_eq!(cut["runs"][0]["results"].as_array().unwrap()[..], all[..2]);
        let notifications = cut["runs"][0]["invocations"][0]["toolExecutionNotifications"].to_string();
        let said = format!("{} more results are not in this log, which has at most 2", all.len() - 2);
        assert!(notifications.contains(&said), "{notifications}");
    }

    #[test]
    fn any_path_is_a_reference() {
        assert_eq!(uri("a b/ü:#?%.py"), "a%20b/%C3%BC%3A%23%3F%25.py");
    }
}
