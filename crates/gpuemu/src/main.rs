//! The gpuemu command line.

mod commands;
mod exit_code;
mod expected_error;
mod format;

use std::process::ExitCode;

use clap::Parser;

use commands::Command;
use expected_error::ExpectedError;

/// Catch silently wrong GPU kernels without a GPU.
#[derive(Debug, Parser)]
#[command(name = "gpuemu", version, propagate_version = true, arg_required_else_help = true)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    match arguments.command.run() {
        Ok(code) => code.into(),
        Err(error) => {
            report(&error);
            exit_code::ENVIRONMENT_ERROR.into()
        }
    }
}

#[allow(clippy::print_stderr, reason = "errors of the command line go to stderr")]
fn report(error: &ExpectedError) {
    anstream::eprintln!("{}error{}: {}", ERROR, ERROR.render_reset(), error.message);
    if let Some(hint) = &error.hint {
        anstream::eprintln!("{}hint{}: {hint}", HINT, HINT.render_reset());
    }
}

const ERROR: anstyle::Style = anstyle::AnsiColor::Red.on_default().bold();
const HINT: anstyle::Style = anstyle::AnsiColor::Cyan.on_default();
