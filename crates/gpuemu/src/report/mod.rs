//! The report on a run, written for people, programs and CI systems.

pub mod junit;
pub mod style;
pub mod text;

use gpuemu_common::report::{Conclusion, RunReport};

use crate::exit_code;
use crate::expected_error::ExpectedError;
use crate::format::{ReportFormat, ReportOutput};

/// Writes a report as asked for; the number is the exit status.
pub fn write(report: &RunReport, output: &ReportOutput) -> Result<u8, ExpectedError> {
    let text = match output.format {
        ReportFormat::Text => text::run(report),
        ReportFormat::Json => {
            let mut text = serde_json::to_string_pretty(report)?;
            text.push('\n');
            text
        }
        ReportFormat::Junit => junit::run(report)?,
    };
    output.write(&text)?;
    Ok(exit_code_of(report))
}

/// What a run makes of the exit status.
pub fn exit_code_of(report: &RunReport) -> u8 {
    match report.conclusion() {
        Conclusion::Passed => exit_code::PASSED,
        Conclusion::Failed => exit_code::FAILED,
        Conclusion::Error => exit_code::ENVIRONMENT_ERROR,
    }
}
