//! `gpuemu report`: stored results as a report.

use std::path::PathBuf;

use gpuemu_client::client::unexpected;
use gpuemu_common::finding::Outcome;
use gpuemu_common::protocol::{ListResults, Request, Response};
use gpuemu_common::report::{
    CaseSummary, Conclusion, DtypeCounts, OpReport, OpStatus, REPORT_VERSION, RunReport, ValidationResult,
};

use gpuemu_daemon::service::merge::merge;

use super::ci::read_report;
use super::kernel_options::{ProjectLook, look_at_kernels};
use crate::expected_error::ExpectedError;
use crate::format::{ReportFormat, ReportOutput};
use crate::report;
use crate::session::{GlobalOptions, Session};

/// What produced an output that a client submitted.
const SUBMITTED: &str = "submitted output";

/// Results that a report is made of at most.
const MOST_RESULTS: u64 = 100_000;

/// Arguments of `gpuemu report`.
#[derive(Debug, Clone, clap::Args)]
pub struct Arguments {
    /// Only results of the last so many hours.
    #[arg(long, value_name = "HOURS", alias = "since_hours")]
    since_hours: Option<f64>,
    /// Only this op.
    #[arg(long, value_name = "NAME")]
    op: Option<String>,
    /// Look at the compiled kernels too, and say what the linter finds.
    #[arg(long, alias = "include_lint")]
    include_lint: bool,
    /// Look at the compiled kernels too, and say what is measured of them.
    #[arg(long, alias = "include_artifacts")]
    include_artifacts: bool,
    /// Join the JSON reports on the shards of one run, in place of showing stored results.
    #[arg(long, value_name = "FILE", num_args = 1.., conflicts_with_all = ["since_hours", "op", "include_lint", "include_artifacts"])]
    merge: Vec<PathBuf>,
    #[command(flatten)]
    output: ReportOutput,
}

/// Runs the command.
pub fn run(arguments: &Arguments, options: &GlobalOptions) -> Result<u8, ExpectedError> {
    if !arguments.merge.is_empty() {
        return merged(&arguments.merge, &arguments.output);
    }
    let mut session = Session::open(options)?;
    let request = ListResults {
        project: session.project(),
        op_name: arguments.op.clone(),
        limit: Some(MOST_RESULTS),
        since_hours: arguments.since_hours,
    };
    let results = list(&mut session, &Request::ListResults(request.clone()))?;
    let failures = list(&mut session, &Request::ListFailures(request))?;
    let with_kernels = arguments.include_lint || arguments.include_artifacts;
    let has_kernels = !session.config.kernels.is_empty();
    let kernels = match with_kernels && has_kernels {
        true => look_at_kernels(&mut session, ProjectLook::default())?.kernels,
        false => Vec::new(),
    };
    if results.is_empty() && kernels.is_empty() {
        let hint = "run `gpuemu test` first, or ask for a longer time";
        return Err(ExpectedError::new("no result of this project is stored for that time", hint));
    }
    let mut report = RunReport {
        version: REPORT_VERSION,
        gpuemu: env!("CARGO_PKG_VERSION").to_string(),
        project: session.config.project.name.clone(),
        config: session.config.file.display().to_string(),
        run: 0,
        time: results.iter().map(|result| result.time).max().unwrap_or_default(),
        seconds: 0.0,
        mode: "stored".to_string(),
        seed: 0,
        settings: Default::default(),
        part: None,
        config_digest: session.config.digest.clone(),
        passed: false,
        ops: group(&session, &results, &failures),
        left_out: 0,
        kernels,
        comparison: None,
        warnings: Vec::new(),
    };
    if results.len() as u64 >= MOST_RESULTS {
        report.warnings.push(format!("only the newest {MOST_RESULTS} results are shown: ask for a shorter time"));
    }
    if with_kernels && !has_kernels {
        report.warnings.push("this project has no compiled kernels".to_string());
    }
    report.passed = report.conclusion() == Conclusion::Passed;
    if arguments.include_artifacts && arguments.output.format == ReportFormat::Text {
        let text = format!("{}\n{}", report::artifacts::text(&report.kernels), report::text::run(&report));
        arguments.output.write(&text)?;
        return Ok(report::exit_code_of(&report));
    }
    report::write(&report, &arguments.output)
}

/// Joins the reports on shards: their configuration decides what is expected to fail, so it is read again.
fn merged(files: &[PathBuf], output: &ReportOutput) -> Result<u8, ExpectedError> {
    let config = Session::configuration()?;
    let reports = files.iter().map(|file| Ok((file.display().to_string(), read_report(file)?)));
    let reports = reports.collect::<Result<Vec<_>, ExpectedError>>()?;
    let report = merge(&config, reports).map_err(|error| {
        let hint = "give the JSON reports of all shards of one run, and run the command where the project is";
        ExpectedError::new(format!("the reports cannot be joined: {error}"), hint)
    })?;
    report::write(&report, output)
}

fn list(session: &mut Session, request: &Request) -> Result<Vec<ValidationResult>, ExpectedError> {
    match session.call(request)? {
        Response::Results { results } => Ok(results),
        other => Err(unexpected(&other).into()),
    }
}

/// One report for each op, of its newest run: an older failure that was mended is history.
fn group(session: &Session, results: &[ValidationResult], failures: &[ValidationResult]) -> Vec<OpReport> {
    let mut names: Vec<&str> = Vec::new();
    for result in results {
        if !names.contains(&result.op.as_str()) {
            names.push(&result.op);
        }
    }
    names.sort_unstable();
    names.into_iter().map(|name| op_report(session, name, results, failures)).collect()
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
        op: name.to_string(),
        status,
        line: session.config.ops.iter().find(|op| op.name == name).map_or(0, |op| op.line),
        runner: mine.first().map_or(String::new(), |result| result.runner.clone()),
        reference: String::new(),
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
        message: None,
        warnings: Vec::new(),
        not_checked: Vec::new(),
        regressed: false,
        seconds: 0.0,
        case_results: mine.iter().take(OpReport::MOST_CASES).map(|result| summary(result)).collect(),
        part: None,
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
