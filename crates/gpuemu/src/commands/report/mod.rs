//! `gpuemu report`: stored results as a report.

mod signed;
mod stored;

use std::path::{Path, PathBuf};

use gpuemu_model::report::{Conclusion, REPORT_VERSION};
use gpuemu_process::fault;
use gpuemu_run::merge::merge;

use super::ci::read_report;
use super::sign::KeyOption;
use crate::expected_error::ExpectedError;
use crate::format::{ReportFormat, ReportOutput};
use crate::session::{GlobalOptions, Session};
use crate::{browser, report};

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
    /// Write the JSON report of an earlier run in another format, in place of showing stored results. Nothing
    /// is run, except the failures that a page shows, where the project is the one that the report is on.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["since_hours", "op", "include_lint", "include_artifacts", "merge"])]
    from: Option<PathBuf>,
    /// Add what the verdicts rest on: configuration, seeds, every verdict, hashes of kernels and inputs. Anything that is
    /// missing, weak or out of date keeps such a report from passing.
    #[arg(long, conflicts_with_all = ["since_hours", "op", "merge", "from"])]
    evidence: bool,
    /// Write a report with evidence as JSON to the --output file, and its signature beside it.
    #[arg(long, requires = "output", conflicts_with_all = ["since_hours", "op", "merge", "from"])]
    signed: bool,
    /// Open the page in the browser; needs --format html and --output.
    #[arg(long, requires = "output")]
    open: bool,
    #[command(flatten)]
    key: KeyOption,
    #[command(flatten)]
    output: ReportOutput,
}

pub fn run(arguments: &Arguments, options: &GlobalOptions) -> Result<u8, ExpectedError> {
    if arguments.open && (arguments.output.format != ReportFormat::Html || arguments.signed) {
        return Err(ExpectedError::new("--open opens a page, and this report is none", "add --format html"));
    }
    let code = write(arguments, options)?;
    if let Some(page) = arguments.output.output.as_deref().filter(|_| arguments.open) {
        browser::open(page)?;
    }
    Ok(code)
}

fn write(arguments: &Arguments, options: &GlobalOptions) -> Result<u8, ExpectedError> {
    if !arguments.merge.is_empty() {
        return merged(&arguments.merge, &arguments.output, options);
    }
    if let Some(file) = &arguments.from {
        return rewritten(file, &arguments.output, options);
    }
    let mut session = Session::open(options)?;
    let mut report = stored::report(&mut session, arguments)?;
    if arguments.signed || arguments.evidence {
        signed::add_evidence(&mut session, &mut report)?;
    }
    if arguments.signed {
        return signed::write(&report, &arguments.key, &arguments.output);
    }
    if arguments.include_artifacts && arguments.output.format == ReportFormat::Text {
        let text = format!("{}\n{}", report::artifacts::text(&report.kernels), report::text::run(&report));
        arguments.output.write(&text)?;
        report::github::tell(&report);
        return Ok(report::exit_code_of(&report));
    }
    report::write_of(&mut session, &report, &arguments.output)
}

/// Writes the report of an earlier run in another format. GitHub is not told of it again.
fn rewritten(file: &Path, output: &ReportOutput, options: &GlobalOptions) -> Result<u8, ExpectedError> {
    let report = read_report(file)?;
    if report.version > REPORT_VERSION {
        let message = format!(
            "{} is a report of version {}, this is gpuemu for version {REPORT_VERSION}",
            file.display(),
            report.version
        );
        return Err(ExpectedError::new(message, "use the gpuemu that wrote it, or a later one"));
    }
    if report.passed != (report.conclusion() == Conclusion::Passed) {
        let message = format!(
            "{} contradicts itself: it says that it {}, and its ops and kernels say otherwise",
            file.display(),
            if report.passed { "passed" } else { "failed" }
        );
        return Err(ExpectedError::new(message, "take the report as gpuemu wrote it"));
    }
    let is_here = || Session::configuration().is_ok_and(|config| config.digest == report.config_digest);
    if output.format == ReportFormat::Html && is_here() {
        return report::render_of(&mut Session::open(options)?, &report, output);
    }
    report::render(&report, output)
}

/// Joins the reports on shards: their configuration decides what is expected to fail, so it is read again.
fn merged(files: &[PathBuf], output: &ReportOutput, options: &GlobalOptions) -> Result<u8, ExpectedError> {
    let config = Session::configuration()?;
    let reports = files.iter().map(|file| Ok((file.display().to_string(), read_report(file)?)));
    let reports = reports.collect::<Result<Vec<_>, ExpectedError>>()?;
    let report = merge(&config, reports).map_err(|error| error.to_string());
    let report = fault!("report.merge", "injected".to_string(), report).map_err(|error| {
        let hint = "give the JSON reports of all shards of one run, and run the command where the project is";
        ExpectedError::new(format!("the reports cannot be joined: {error}"), hint)
    })?;
    match output.format {
        // Cases are the same on every machine: failures of all shards can be run again here.
        ReportFormat::Html => report::write_of(&mut Session::open(options)?, &report, output),
        _ => report::write(&report, output),
    }
}
