//! `gpuemu reproduce`: run one case again.

use gpuemu_client::client::unexpected;
use gpuemu_common::finding::Outcome;
use gpuemu_common::protocol::{FuzzConfig, ReplayCase, Request, Response};

use super::run_options::{CaseOptions, SeedArgument};
use crate::exit_code;
use crate::expected_error::ExpectedError;
use crate::format::{Format, write_json, write_text};
use crate::report::text;
use crate::session::{GlobalOptions, Session};

/// Arguments of `gpuemu reproduce`.
#[derive(Debug, Clone, clap::Args)]
pub struct Arguments {
    #[command(flatten)]
    seed: SeedArgument,
    /// The op; may be left out where a stored result has the seed.
    #[arg(long, value_name = "NAME")]
    op: Option<String>,
    /// The smallest form of a failure that was minimized.
    #[arg(long)]
    minimized: bool,
    /// The case was drawn by a quick run.
    #[arg(long)]
    quick: bool,
    #[command(flatten)]
    cases: CaseOptions,
    /// Format of the result.
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
}

/// Runs the command.
pub fn run(arguments: &Arguments, options: &GlobalOptions) -> Result<u8, ExpectedError> {
    let config = FuzzConfig { quick: arguments.quick, ..arguments.cases.config()? };
    let mut session = Session::open(options)?;
    let request = ReplayCase {
        project: session.project(),
        op_name: arguments.op.clone(),
        seed: arguments.seed.value(),
        config,
        minimized: arguments.minimized,
    };
    replay(&mut session, request, arguments.format)
}

/// Runs a case again and shows its verdict.
pub fn replay(session: &mut Session, request: ReplayCase, format: Format) -> Result<u8, ExpectedError> {
    let result = match session.run(Request::Reproduce(request))? {
        Response::ValidationResult { result } => result,
        other => return Err(unexpected(&other).into()),
    };
    match format {
        Format::Json => write_json(&result)?,
        Format::Text => write_text(&text::result(&result))?,
    }
    Ok(match result.outcome {
        Outcome::Passed => exit_code::PASSED,
        Outcome::Failed => exit_code::FAILED,
        Outcome::Undetermined | Outcome::Error => exit_code::ENVIRONMENT_ERROR,
    })
}
