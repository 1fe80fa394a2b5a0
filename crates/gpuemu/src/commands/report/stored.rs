//! The report on stored results: of each op its newest run.

use std::collections::BTreeSet;

use gpuemu_client::client::unexpected;
use gpuemu_client::fault;
use gpuemu_common::finding::Outcome;
use gpuemu_common::protocol::{ListResults, ListRuns, Request, Response};
use gpuemu_common::report::{
    CaseSummary, Conclusion, DtypeCounts, OpReport, OpStatus, RunReport, StoredRun, ValidationResult,
};
use gpuemu_daemon::service::result::now;

use super::super::kernel_options::{ProjectLook, look_at_kernels};
use super::Arguments;
use crate::expected_error::ExpectedError;
use crate::session::Session;

/// What produced an output that a client submitted.
const SUBMITTED: &str = "submitted output";

/// Results that a report is made of at most.
const MOST_RESULTS: u64 = 100_000;

/// The report on what is stored.
pub fn report(session: &mut Session, arguments: &Arguments) -> Result<RunReport, ExpectedError> {
    let request = ListResults {
        project: session.project(),
        op_name: arguments.op.clone(),
        limit: Some(MOST_RESULTS),
        since_hours: arguments.since_hours,
    };
    let results = list(session, &Request::ListResults(request.clone()))?;
    let failures = list(session, &Request::ListFailures(request))?;
    let with_kernels = arguments.include_lint || arguments.include_artifacts;
    let has_kernels = !session.config.kernels.is_empty();
    let kernels = match with_kernels && has_kernels {
        true => look_at_kernels(session, ProjectLook::default())?.kernels,
        false => Vec::new(),
    };
    let runs = runs(session, arguments)?;
    if results.is_empty() && runs.is_empty() && kernels.is_empty() {
        let hint = "run `gpuemu test` first, or ask for a longer time";
        return Err(ExpectedError::new("no result of this project is stored for that time", hint));
    }
    fault!("report.stored");
    let mut report = RunReport {
        time: results.iter().map(|result| result.time).max().unwrap_or_default(),
        ops: group(session, &results, &failures, &runs),
        kernels,
        ..RunReport::blank(env!("CARGO_PKG_VERSION"), &session.config, "stored")
    };
    if results.len() as u64 >= MOST_RESULTS {
        report.warnings.push(format!("only the newest {MOST_RESULTS} results are shown: ask for a shorter time"));
    }
    if with_kernels && !has_kernels {
        report.warnings.push("this project has no compiled kernels".to_string());
    }
    report.passed = report.conclusion() == Conclusion::Passed;
    Ok(report)
}

fn list(session: &mut Session, request: &Request) -> Result<Vec<ValidationResult>, ExpectedError> {
    match session.call(request)? {
        Response::Results { results } => Ok(results),
        other => Err(unexpected(&other).into()),
    }
}

/// What ops came to in their newest run.
fn runs(session: &mut Session, arguments: &Arguments) -> Result<Vec<StoredRun>, ExpectedError> {
    let request = ListRuns { project: session.project(), op_name: arguments.op.clone(), limit: Some(1) };
    let runs = match session.call(&Request::ListRuns(request))? {
        Response::Runs { runs } => runs,
        other => return Err(unexpected(&other).into()),
    };
    let since = arguments.since_hours.map_or(0, |hours| now().saturating_sub((hours * 3_600_000.0) as u64));
    Ok(runs.into_iter().filter(|run| run.time >= since).collect())
}

/// One report for each op, of its newest run: an older failure that was mended is history.
fn group(
    session: &Session,
    results: &[ValidationResult],
    failures: &[ValidationResult],
    runs: &[StoredRun],
) -> Vec<OpReport> {
    let of_results = results.iter().map(|result| result.op.as_str());
    let names: BTreeSet<&str> = of_results.chain(runs.iter().map(|run| run.op.op.as_str())).collect();
    let newest = |name: &str| results.iter().filter(|result| result.op == name).filter_map(|result| result.run).max();
    let report = |name: &str| {
        let stored = runs.iter().find(|run| run.op.op == name && newest(name).is_none_or(|newest| run.run >= newest));
        match stored {
            Some(run) => of_run(session, run, results, failures),
            // Nobody said what these come to: a client recorded them.
            None => op_report(session, name, results, failures),
        }
    };
    names.into_iter().map(report).collect()
}

/// The report on an op as its run left it, with the failures and cases that are stored by themselves.
fn of_run(session: &Session, run: &StoredRun, results: &[ValidationResult], failures: &[ValidationResult]) -> OpReport {
    let mine = |result: &&ValidationResult| result.op == run.op.op && result.run == Some(run.run);
    // Stored results come with the last case first.
    let cases: Vec<CaseSummary> = results.iter().filter(mine).map(summary).rev().collect();
    let failed: Vec<ValidationResult> =
        failures.iter().filter(mine).filter(|one| !one.minimized).rev().cloned().collect();
    let mut report = run.op.clone();
    report.line = session.config.ops.iter().find(|op| op.name == run.op.op).map_or(0, |op| op.line);
    if cases.len() as u64 != report.cases {
        report.warnings.push(format!("{} of the {} results of its run are still stored", cases.len(), report.cases));
    }
    report.failures = failed.into_iter().take(OpReport::MOST_FAILURES).collect();
    report.case_results = cases.into_iter().take(OpReport::MOST_CASES).collect();
    report
}

fn op_report(session: &Session, name: &str, results: &[ValidationResult], failures: &[ValidationResult]) -> OpReport {
    let newest = results.iter().filter(|result| result.op == name).map(|result| result.run).max().flatten();
    let submitted = |result: &ValidationResult| result.runner == SUBMITTED;
    let newest_is_submitted =
        results.iter().find(|result| result.op == name && result.run == newest).is_some_and(submitted);
    // Each submitted output is a run of its own: together they are what the client's code did.
    let of_run = |result: &&ValidationResult| {
        result.op == name && (result.run == newest || (newest_is_submitted && submitted(result)))
    };
    let mine: Vec<&ValidationResult> = results.iter().filter(of_run).collect();
    let failed: Vec<ValidationResult> = failures.iter().filter(of_run).cloned().collect();
    let count = |outcome: Outcome| mine.iter().filter(|result| result.outcome == outcome).count() as u64;
    let largest = |error: fn(&ValidationResult) -> f64| mine.iter().map(|result| error(result)).fold(0.0, f64::max);
    let mut dtypes: Vec<DtypeCounts> = Vec::new();
    for result in &mine {
        let place = dtypes.iter().position(|counts| counts.dtype == result.dtype).unwrap_or_else(|| {
            dtypes.push(DtypeCounts { dtype: result.dtype, cases: 0, failed: 0, judged: 0, max_abs_diff: 0.0 });
            dtypes.len() - 1
        });
        dtypes[place].cases += 1;
        dtypes[place].failed += u64::from(result.outcome == Outcome::Failed);
        dtypes[place].judged += u64::from(result.outcome == Outcome::Passed);
        dtypes[place].max_abs_diff = dtypes[place].max_abs_diff.max(result.max_abs_diff);
    }
    dtypes.sort_by_key(|counts| counts.dtype);
    let status = match (count(Outcome::Failed), count(Outcome::Error), count(Outcome::Passed)) {
        (1.., ..) => OpStatus::Failed,
        (0, 1.., _) | (0, 0, 0) => OpStatus::Error,
        _ => OpStatus::Passed,
    };
    OpReport {
        status,
        line: session.config.ops.iter().find(|op| op.name == name).map_or(0, |op| op.line),
        runner: mine.first().map_or(String::new(), |result| result.runner.clone()),
        planned: mine.len() as u64,
        cases: mine.len() as u64,
        passed: count(Outcome::Passed),
        failed: count(Outcome::Failed),
        undetermined: count(Outcome::Undetermined),
        errors: count(Outcome::Error),
        dtypes,
        max_abs_diff: largest(|result| result.max_abs_diff),
        max_rel_diff: largest(|result| result.max_rel_diff),
        max_ulp_diff: largest(|result| result.max_ulp_diff),
        tolerance_share: largest(|result| result.tolerance_share),
        failures: failed.into_iter().take(OpReport::MOST_FAILURES).collect(),
        case_results: mine.iter().take(OpReport::MOST_CASES).map(|result| summary(result)).collect(),
        ..OpReport::blank(name)
    }
}

fn summary(result: &ValidationResult) -> CaseSummary {
    CaseSummary {
        outcome: result.outcome,
        max_abs_diff: result.max_abs_diff,
        max_ulp_diff: result.max_ulp_diff,
        case: result.case.clone(),
    }
}
