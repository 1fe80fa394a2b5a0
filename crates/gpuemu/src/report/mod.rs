//! The report on a run, written for people, programs and CI systems.

pub mod access;
pub mod artifacts;
pub mod github;
pub mod html;
pub mod illustrations;
pub mod issues;
pub mod junit;
pub mod kernel_comparison;
pub mod kernels;
pub mod markdown;
mod markdown_text;
pub mod places;
mod ranking;
pub mod rules;
pub mod sarif;
pub mod style;
pub mod text;

use gpuemu_model::artifact::KernelReport;
use gpuemu_model::json::ToJson;
use gpuemu_model::report::{Conclusion, RunReport, UNCHANGED};
use gpuemu_model::shard::{RunPart, Shard};
use gpuemu_process::fault;
use illustrations::Illustrations;

use crate::exit_code;
use crate::expected_error::ExpectedError;
use crate::format::{ReportFormat, ReportOutput};
use crate::session::Session;

/// Writes the report on a run as asked for, and tells GitHub of it in one of its workflows; the number is the exit status.
pub fn write(report: &RunReport, output: &ReportOutput) -> Result<u8, ExpectedError> {
    let code = render(report, output)?;
    github::tell(report);
    Ok(code)
}

/// Writes a report as asked for; the number is the exit status.
pub fn render(report: &RunReport, output: &ReportOutput) -> Result<u8, ExpectedError> {
    let injected = || ExpectedError::plain("injected");
    let text = match output.format {
        ReportFormat::Text => {
            fault!("report.text");
            text::run(report)
        }
        ReportFormat::Json => {
            let text = report.to_pretty_json().map_err(ExpectedError::from);
            let mut text = fault!("report.json", injected(), text)?;
            text.push('\n');
            text
        }
        ReportFormat::Junit => fault!("report.junit", injected(), junit::run(report))?,
        ReportFormat::Sarif => fault!("report.sarif", injected(), sarif::run(report))?,
        ReportFormat::Markdown => {
            fault!("report.markdown");
            markdown::run(report)
        }
        ReportFormat::Html => html::page(report, &Illustrations::default()),
    };
    output.write(&text)?;
    Ok(exit_code_of(report))
}

/// Writes the report on a run as [`write`] does, on a project that is there: a page shows more than the report says.
pub fn write_of(session: &mut Session, report: &RunReport, output: &ReportOutput) -> Result<u8, ExpectedError> {
    let code = render_of(session, report, output)?;
    github::tell(report);
    Ok(code)
}

/// Writes a report as asked for, on a project that is there.
pub fn render_of(session: &mut Session, report: &RunReport, output: &ReportOutput) -> Result<u8, ExpectedError> {
    if output.format != ReportFormat::Html {
        return render(report, output);
    }
    let illustrations = Illustrations::gather(session, report, !output.no_minimize);
    let illustrations = fault!("report.illustrations", ExpectedError::plain("injected"), illustrations)?;
    fault!("report.html");
    output.write(&html::page(report, &illustrations))?;
    Ok(exit_code_of(report))
}

/// Writes a report without an op, where none had to be run: whoever waits for the file gets one.
pub fn write_without_ops(
    session: &Session,
    kernels: Vec<KernelReport>,
    shard: Option<Shard>,
    output: &ReportOutput,
) -> Result<u8, ExpectedError> {
    let mut report = RunReport {
        part: shard.map(|shard| RunPart { shard, warnings: Vec::new() }),
        kernels,
        ..session.config.blank_report(env!("CARGO_PKG_VERSION"), UNCHANGED)
    };
    report.passed = report.conclusion() == Conclusion::Passed;
    write(&report, output)
}

/// What a run makes of the exit status.
pub fn exit_code_of(report: &RunReport) -> u8 {
    match report.conclusion() {
        Conclusion::Passed => exit_code::PASSED,
        Conclusion::Failed => exit_code::FAILED,
        Conclusion::Error => exit_code::ENVIRONMENT_ERROR,
    }
}
