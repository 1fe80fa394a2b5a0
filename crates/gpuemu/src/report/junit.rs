//! Reports for CI systems: a suite for each op, a test case for each dtype; a suite for each compiled kernel, a test
//! case for each of its entries.

use std::time::Duration;

use gpuemu_model::artifact::{ArtifactStatus, KernelReport, KernelStatus, LintFinding, Severity};
use gpuemu_model::finding::Finding;
use gpuemu_model::report::{ComparisonReport, ComparisonStatus, OpReport, OpStatus, RunReport, ValidationResult};
use quick_junit::{NonSuccessKind, Report, TestCase, TestCaseStatus, TestSuite};

use super::issues::{Issue, Subject, Weight, issues};
use super::style::plain;
use super::{kernel_comparison, kernels, text};
use crate::expected_error::ExpectedError;

/// The report on a run as JUnit XML.
pub fn run(report: &RunReport) -> Result<String, ExpectedError> {
    let mut document = Report::new(&report.project);
    document.set_time(duration(report.seconds));
    for op in &report.ops {
        document.add_test_suite(suite(op, report));
    }
    for kernel in &report.kernels {
        document.add_test_suite(kernel_suite(kernel));
    }
    if let Some(comparison) = &report.comparison {
        document.add_test_suite(compared(comparison));
    }
    let issues = issues(report);
    let of_run = |issue: &&Issue| issue.subject == Subject::Run && issue.weight != Weight::Remark;
    let of_run: Vec<&Issue> = issues.iter().filter(of_run).collect();
    if !of_run.is_empty() {
        document.add_test_suite(run_suite(&of_run));
    }
    document.to_string().map_err(|error| ExpectedError::plain(format!("the report cannot be written as XML: {error}")))
}

fn suite(op: &OpReport, report: &RunReport) -> TestSuite {
    let mut suite = TestSuite::new(&op.op);
    suite.set_time(duration(op.seconds));
    suite.add_property(("seed", report.seed.to_string().as_str()));
    suite.add_property(("mode", report.mode.as_str()));
    suite.add_property(("runner", op.runner.as_str()));
    suite.add_property(("reference", op.reference.as_str()));
    for counts in &op.dtypes {
        let mut status = TestCaseStatus::success();
        if counts.failed > 0 {
            let failures = op.failures.iter().filter(|failure| failure.dtype == counts.dtype);
            let described: Vec<String> = failures.map(|failure| plain(&text::result(failure))).collect();
            let first = op.failures.iter().find(|failure| failure.dtype == counts.dtype);
            let words = first.and_then(ValidationResult::finding).map_or("", Finding::headline);
            let message = format!("{} of {} cases failed: {words}", counts.failed, counts.cases);
            status = if op.status == OpStatus::ExpectedFailure {
                let mut skipped = TestCaseStatus::skipped();
                skipped.set_message(op.message.clone().unwrap_or(message));
                skipped
            } else {
                non_success(NonSuccessKind::Failure, "validation", &message, &described.join("\n"))
            };
        }
        if counts.failed == 0 && counts.judged == 0 {
            status = TestCaseStatus::skipped();
            status.set_message("no case of this dtype could be judged");
        }
        let mut case = TestCase::new(counts.dtype.to_string(), status);
        case.set_classname(&op.op);
        suite.add_test_case(case);
    }
    if matches!(op.status, OpStatus::Error | OpStatus::Unfinished) {
        let message = op.message.clone().unwrap_or_default();
        let (kind, name) = match op.status {
            OpStatus::Error => (NonSuccessKind::Error, "setup"),
            _ => (NonSuccessKind::Failure, "unfinished"),
        };
        let first = message.lines().next().unwrap_or_default().to_string();
        let mut case = TestCase::new(name, non_success(kind, name, &first, &message));
        case.set_classname(&op.op);
        suite.add_test_case(case);
    }
    suite
}

fn kernel_suite(kernel: &KernelReport) -> TestSuite {
    let mut suite = TestSuite::new(format!("kernel {}", kernel.kernel));
    let described = plain(&kernels::text(std::slice::from_ref(kernel), Severity::Note));
    let entries = kernel.artifact.iter().flat_map(|artifact| &artifact.entries);
    for entry in entries {
        let found = kernel.lint.findings.iter().filter(|finding| finding.entry == entry.entry);
        let mut errors = found.filter(|finding| finding.severity == Severity::Error);
        let status = match errors.next() {
            Some(first) => non_success(NonSuccessKind::Failure, &first.rule, &first.message, &described),
            None => TestCaseStatus::success(),
        };
        let mut case = TestCase::new(&entry.entry, status);
        case.set_classname(&kernel.kernel);
        suite.add_test_case(case);
    }
    let known =
        |entry: &str| kernel.artifact.iter().any(|artifact| artifact.entries.iter().any(|one| one.entry == entry));
    let elsewhere = |finding: &&LintFinding| finding.severity == Severity::Error && !known(&finding.entry);
    if let Some(first) = kernel.lint.findings.iter().find(elsewhere) {
        let status = non_success(NonSuccessKind::Failure, &first.rule, &first.message, &described);
        let mut case = TestCase::new("lint", status);
        case.set_classname(&kernel.kernel);
        suite.add_test_case(case);
    }
    if kernel.status == KernelStatus::Error {
        let message = kernel.message.clone().unwrap_or_default();
        let first = message.lines().next().unwrap_or_default().to_string();
        let mut case = TestCase::new("setup", non_success(NonSuccessKind::Error, "setup", &first, &message));
        case.set_classname(&kernel.kernel);
        suite.add_test_case(case);
    }
    suite
}

/// Seconds of a report; a report of others may have any number there.
fn duration(seconds: f64) -> Duration {
    Duration::try_from_secs_f64(seconds).unwrap_or_default()
}

fn compared(comparison: &ComparisonReport) -> TestSuite {
    let mut suite = TestSuite::new(format!("baseline {}", comparison.baseline));
    for op in &comparison.ops {
        let growth = format!("largest error {:e}, {:e} in the baseline", op.now_abs, op.before_abs);
        let detail = op.worst.as_ref().map(|worst| plain(&text::result(worst))).unwrap_or_default();
        let status = match op.status {
            ComparisonStatus::Same | ComparisonStatus::Improved => TestCaseStatus::success(),
            ComparisonStatus::Regressed if comparison.fails => {
                non_success(NonSuccessKind::Failure, "regression", &growth, &detail)
            }
            ComparisonStatus::Regressed => {
                let mut skipped = TestCaseStatus::skipped();
                skipped.set_message(growth);
                skipped
            }
            ComparisonStatus::NotComparable => {
                let message = op.message.clone().unwrap_or_default();
                non_success(NonSuccessKind::Error, "baseline", &message, &message)
            }
        };
        let mut case = TestCase::new(&op.op, status);
        case.set_classname("baseline");
        suite.add_test_case(case);
    }
    for entry in &comparison.artifacts {
        let detail = plain(&kernel_comparison::text(std::slice::from_ref(entry)));
        let message = entry.message.clone().unwrap_or_else(|| "the compiled kernel is worse".to_string());
        let status = match entry.status {
            ArtifactStatus::Regressed if comparison.fails => {
                non_success(NonSuccessKind::Failure, "regression", &message, &detail)
            }
            ArtifactStatus::Regressed => {
                let mut skipped = TestCaseStatus::skipped();
                skipped.set_message(message);
                skipped
            }
            ArtifactStatus::Missing | ArtifactStatus::NotComparable => {
                non_success(NonSuccessKind::Error, "baseline", &message, &detail)
            }
            ArtifactStatus::Same | ArtifactStatus::Changed | ArtifactStatus::Improved | ArtifactStatus::New => {
                TestCaseStatus::success()
            }
        };
        let mut case = TestCase::new(kernel_comparison::name(entry), status);
        case.set_classname("baseline");
        suite.add_test_case(case);
    }
    suite
}

/// What keeps the whole run from passing: no case at all, or evidence that is missing.
fn run_suite(issues: &[&Issue]) -> TestSuite {
    let mut suite = TestSuite::new("run");
    for (place, issue) in issues.iter().enumerate() {
        let kind = if issue.weight == Weight::Error { NonSuccessKind::Error } else { NonSuccessKind::Failure };
        let name = if place == 0 { issue.rule.id.clone() } else { format!("{} {}", issue.rule.id, place + 1) };
        let mut case = TestCase::new(name, non_success(kind, &issue.rule.id, &issue.summary, &issue.summary));
        case.set_classname("run");
        suite.add_test_case(case);
    }
    suite
}

fn non_success(kind: NonSuccessKind, kind_name: &str, message: &str, description: &str) -> TestCaseStatus {
    let mut status = TestCaseStatus::non_success(kind);
    status.set_type(kind_name).set_message(message).set_description(description);
    status
}
