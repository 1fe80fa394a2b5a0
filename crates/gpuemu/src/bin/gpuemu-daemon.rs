//! The daemon as a program of its own; `gpuemu daemon run` is the same.

use std::process::ExitCode;

use clap::Parser;
use gpuemu_config::Environment;

/// The daemon of gpuemu: judges kernels, keeps results, answers on its socket.
#[derive(Debug, Parser)]
#[command(name = "gpuemu-daemon", version)]
struct Arguments {
    /// Log only to the file, not to stderr.
    #[arg(long)]
    detached: bool,
}

#[allow(clippy::print_stderr, reason = "errors of the program go to stderr")]
fn main() -> ExitCode {
    let arguments = Arguments::parse();
    match gpuemu_daemon::lifecycle::run(Environment::of_process(), !arguments.detached) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            let waited_for = arguments.detached && error.is_in_use();
            ExitCode::from(if waited_for { gpuemu_wire::start::IN_USE } else { 2 })
        }
    }
}
