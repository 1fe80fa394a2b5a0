//! The gpuemu command line: what the program `gpuemu` does, and what others of this workspace need of it.

mod browser;
mod changed;
mod cluster;
mod commands;
mod exit_code;
pub mod expected_error;
pub mod format;
mod markup;
mod options;
mod progress;
pub mod reference;
pub mod report;
pub mod session;
pub mod signing;
mod watch;
mod whole_files;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;

use clap::Parser;

use commands::Command;
use expected_error::ExpectedError;
use session::GlobalOptions;

/// Catch silently wrong GPU kernels without a GPU.
#[derive(Debug, Parser)]
#[command(name = "gpuemu", version, propagate_version = true, arg_required_else_help = true)]
struct Arguments {
    #[command(flatten)]
    options: GlobalOptions,
    #[command(subcommand)]
    command: Command,
}

/// Does what the arguments of this process ask for.
pub fn run() -> ExitCode {
    if std::env::var_os("GPUEMU_NO_COLOR").is_some_and(|value| !value.is_empty()) {
        anstream::ColorChoice::Never.write_global();
    }
    gpuemu_process::fault::arm();
    let arguments = Arguments::parse();
    // A panic has an exit status of its own, which no CI system knows as "could not be judged".
    let ran = catch_unwind(AssertUnwindSafe(|| arguments.command.run(&arguments.options)));
    match ran {
        Ok(Ok(code)) => code.into(),
        Ok(Err(error)) => {
            report_error(&error);
            exit_code::ENVIRONMENT_ERROR.into()
        }
        // The panic has said why.
        Err(_) => exit_code::ENVIRONMENT_ERROR.into(),
    }
}

#[allow(clippy::print_stderr, reason = "errors of the command line go to stderr")]
fn report_error(error: &ExpectedError) {
    anstream::eprintln!("{ERROR}error{ERROR:#}: {}", error.message);
    if let Some(hint) = &error.hint {
        anstream::eprintln!("{HINT}hint{HINT:#}: {hint}");
    }
}

const ERROR: anstyle::Style = anstyle::AnsiColor::Red.on_default().bold();
const HINT: anstyle::Style = anstyle::AnsiColor::Cyan.on_default();
