//! `gpuemu diff`: run the cases of a baseline again and compare errors.

use gpuemu_client::client::unexpected;
use gpuemu_common::protocol::{CompareBaseline, Request, Response};

use super::ci;
use crate::exit_code;
use crate::expected_error::ExpectedError;
use crate::format::{Format, write_json, write_text};
use crate::report::text;
use crate::session::{GlobalOptions, Session};

/// Arguments of `gpuemu diff`.
#[derive(Debug, Clone, clap::Args)]
pub struct Arguments {
    /// A stored baseline, or the JSON report of an earlier run.
    #[arg(long, value_name = "TAG|FILE")]
    baseline: String,
    /// Only this op.
    #[arg(long, value_name = "NAME")]
    op: Option<String>,
    /// Format of the result.
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
}

/// Runs the command.
pub fn run(arguments: &Arguments, options: &GlobalOptions) -> Result<u8, ExpectedError> {
    let baseline = ci::baseline(&arguments.baseline)?;
    let mut session = Session::open(options)?;
    let request = CompareBaseline { project: session.project(), baseline, op_name: arguments.op.clone() };
    let comparison = match session.run(Request::CompareBaseline(request))? {
        Response::Comparison { comparison } => comparison,
        other => return Err(unexpected(&other).into()),
    };
    match arguments.format {
        Format::Json => write_json(&comparison)?,
        Format::Text => write_text(&text::comparison(&comparison))?,
    }
    Ok(if comparison.regressed() || comparison.is_failing() {
        exit_code::FAILED
    } else if comparison.is_incomplete() {
        exit_code::ENVIRONMENT_ERROR
    } else {
        exit_code::PASSED
    })
}
