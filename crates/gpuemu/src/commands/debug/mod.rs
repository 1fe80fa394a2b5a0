//! `gpuemu debug`: look into stored failures, tensor by tensor.

mod export;
mod open_case;
mod repl;
mod slice;
mod tensor_view;

use gpuemu_model::settings::FuzzConfig;

use crate::expected_error::ExpectedError;
use crate::options::cases::CaseOptions;
use crate::session::{GlobalOptions, Session};

/// Arguments of `gpuemu debug`.
#[derive(Debug, Clone, clap::Args)]
pub struct Arguments {
    /// The seed of a case to open at the start.
    #[arg(value_name = "SEED")]
    seed: Option<u64>,
    /// The op; may be left out where a stored result has the seed.
    #[arg(long, value_name = "NAME", requires = "seed")]
    op: Option<String>,
    /// The case was drawn by a quick run.
    #[arg(long, requires = "seed")]
    quick: bool,
    #[command(flatten)]
    cases: CaseOptions,
}

/// Runs the command: reads commands from stdin until it ends.
pub fn run(arguments: &Arguments, options: &GlobalOptions) -> Result<u8, ExpectedError> {
    let config = FuzzConfig { quick: arguments.quick, ..arguments.cases.config()? };
    if arguments.seed.is_none() && config != FuzzConfig::default() {
        return Err(ExpectedError::new("options of a case are given, but no case", "gpuemu debug SEED --op NAME ..."));
    }
    let mut repl = repl::Repl::new(Session::open(options)?, options.quiet);
    if let Some(seed) = arguments.seed {
        repl.open(seed, arguments.op.clone(), config)?;
    }
    repl.run()
}
