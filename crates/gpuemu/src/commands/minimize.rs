//! `gpuemu minimize`: shrink a failing case.

use std::fmt::Write;

use gpuemu_model::json::ToJson;
use gpuemu_model::settings::FuzzConfig;
use gpuemu_wire::client::unexpected;
use gpuemu_wire::protocol::{Minimize, Minimized, Request, Response};

use crate::exit_code;
use crate::expected_error::ExpectedError;
use crate::format::{Format, write_json, write_text};
use crate::options::cases::{CaseOptions, SeedArgument};
use crate::report::text;
use crate::session::{GlobalOptions, Session};

/// Arguments of `gpuemu minimize`.
#[derive(Debug, Clone, clap::Args)]
pub struct Arguments {
    #[command(flatten)]
    seed: SeedArgument,
    /// The op; may be left out where a stored failure has the seed.
    #[arg(long, value_name = "NAME")]
    op: Option<String>,
    /// What is shrunk: combined, binary-search-dims or binary-search-values.
    #[arg(long, value_name = "STRATEGY")]
    strategy: Option<String>,
    /// Most runs of the case [default: 2000].
    #[arg(long, value_name = "N")]
    max_runs: Option<u64>,
    /// The case was drawn by a quick run.
    #[arg(long)]
    quick: bool,
    #[command(flatten)]
    cases: CaseOptions,
    /// Format of the result.
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
}

/// Runs the command. A case that was shrunk is a case that fails: the exit status is 1.
pub fn run(arguments: &Arguments, options: &GlobalOptions) -> Result<u8, ExpectedError> {
    let config = FuzzConfig { quick: arguments.quick, ..arguments.cases.config()? };
    let mut session = Session::open(options)?;
    let request = Minimize {
        project: session.project(),
        op_name: arguments.op.clone(),
        seed: arguments.seed.value(),
        config,
        strategy: arguments.strategy.clone(),
        max_runs: arguments.max_runs,
    };
    let minimized = match session.run(Request::Minimize(request))? {
        Response::Minimized { minimized } => minimized,
        other => return Err(unexpected(&other).into()),
    };
    match arguments.format {
        Format::Json => write_json(&minimized.to_json_value()?)?,
        Format::Text => write_text(&describe(&minimized))?,
    }
    Ok(exit_code::FAILED)
}

/// What the search found.
pub fn describe(minimized: &Minimized) -> String {
    let mut text = String::new();
    // Writing to a string cannot fail.
    let _ = writeln!(text, "original:  {}", text::case_line(&minimized.original));
    let _ = writeln!(text, "minimized: {}", text::case_line(&minimized.minimized));
    let _ = match &minimized.neighbour {
        Some(neighbour) => writeln!(
            text,
            "           fails at {0}={1}, passes at {0}={2}",
            neighbour.dimension, neighbour.fails, neighbour.passes
        ),
        None => writeln!(text, "           no passing case next to it was found"),
    };
    if minimized.values_edited {
        let _ = writeln!(text, "           values were simplified; the inputs are kept with the failure");
    }
    text.push_str(&text::result(&minimized.minimized));
    let _ = writeln!(text, "{} runs", minimized.runs);
    text
}
