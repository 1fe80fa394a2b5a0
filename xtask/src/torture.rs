//! `cargo xtask torture`: runs the program of that name over the programs of the package `gpuemu`.

use std::path::PathBuf;
use std::process::Command;

use crate::failure::Failure;
use crate::python_environment::{self, PythonEnvironment};
use crate::{native_module, process};

/// What the step of `cargo xtask test` passes on.
pub const SHORT: &[&str] = &["--short"];

/// The tests of the crates that users run without checks of their arithmetic, with these checks.
const CHECKED_TESTS: &[&str] =
    &["test", "--profile", "checked", "--package", "gpuemu-engine", "--package", "gpuemu-machine"];

/// Runs trials in an optimised build; `arguments` go to the program. Without Python, the trials that need it
/// say so.
pub fn run(arguments: &[String]) -> Result<(), Failure> {
    if arguments.is_empty() {
        process::run(process::cargo()?.args(CHECKED_TESTS))?;
    }
    let python = python_environment::prepare(&python_environment::DEVELOPMENT);
    if let Err(failure) = &python {
        eprintln!("no Python to start scripts with: {failure}");
    }
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    perform(&arguments, python.ok().as_ref())
}

/// The same with a Python that is there.
pub fn perform(arguments: &[&str], python: Option<&PythonEnvironment>) -> Result<(), Failure> {
    let program = build()?;
    let mut command = Command::new(program);
    if let Some(environment) = python {
        command.env("GPUEMU_TEST_PYTHON", environment.python()?.get_program());
    }
    process::run(command.args(arguments))
}

/// Builds the program, and the two that it puts to the test.
pub fn build() -> Result<PathBuf, Failure> {
    // The daemon and the command line are tortured as the processes they are. Built together, all are made of the same
    // compiled crates as `cargo run --package gpuemu`.
    let mut build = process::cargo()?;
    build.args(["build", "--release", "--message-format", "json-render-diagnostics"]);
    build.args(["--package", "gpuemu", "--package", "gpuemu-torture"]);
    let (messages, verdict) = process::run_keeping_output(native_module::with_build_settings(&mut build))?;
    verdict?;
    // The gpuemu that can be made to fail has a name of its own, and only the crates with such places are compiled again.
    let mut faults = process::cargo()?;
    faults.args(["build", "--release", "--package", "gpuemu", "--features", "faults", "--bin", "gpuemu-with-faults"]);
    process::run(native_module::with_build_settings(&mut faults))?;
    native_module::program_in(&messages, "gpuemu-torture").map_err(Failure::Check)
}
