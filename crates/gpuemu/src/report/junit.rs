//! Reports for CI systems: a suite for each op, a test case for each dtype.

use std::time::Duration;

use gpuemu_common::report::{ComparisonReport, ComparisonStatus, OpReport, OpStatus, RunReport};
use quick_junit::{NonSuccessKind, Report, TestCase, TestCaseStatus, TestSuite};

use super::text;
use crate::expected_error::ExpectedError;

/// The report on a run as JUnit XML.
pub fn run(report: &RunReport) -> Result<String, ExpectedError> {
    let mut document = Report::new(&report.project);
    document.set_time(Duration::from_secs_f64(report.seconds.max(0.0)));
    for op in &report.ops {
        document.add_test_suite(suite(op, report));
    }
    if let Some(comparison) = &report.comparison {
        document.add_test_suite(compared(comparison));
    }
    document.to_string().map_err(|error| ExpectedError::plain(format!("the report cannot be written as XML: {error}")))
}

fn suite(op: &OpReport, report: &RunReport) -> TestSuite {
    let mut suite = TestSuite::new(&op.op);
    suite.set_time(Duration::from_secs_f64(op.seconds.max(0.0)));
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
            let words = first.and_then(|failure| Some(failure.finding()?.explanation.clone())).unwrap_or_default();
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
    suite
}

fn non_success(kind: NonSuccessKind, kind_name: &str, message: &str, description: &str) -> TestCaseStatus {
    let mut status = TestCaseStatus::non_success(kind);
    status.set_type(kind_name).set_message(message).set_description(description);
    status
}

fn plain(text: &str) -> String {
    anstream::adapter::strip_str(text).to_string()
}
