//! `cargo xtask bench`: runs the benchmark program of the corpus.

use std::process::Command;

use crate::failure::Failure;
use crate::{native_module, process, python_environment};

/// Runs the benchmarks in an optimised build; `args` go to the benchmark program. NumPy is a peer
/// there: where it cannot be had, its figures are missing and everything else is still measured.
pub fn run(args: &[String]) -> Result<(), Failure> {
    let mut command = process::cargo()?;
    command.args(["run", "--release", "--package", "gpuemu-corpus", "--example", "bench", "--"]).args(args);
    match python_environment::prepare(&python_environment::DEVELOPMENT).and_then(|environment| environment.python()) {
        Ok(python) => name_python(&mut command, &python)?,
        Err(failure) => {
            eprintln!("no NumPy to measure beside: {failure}");
            // Some rows measure the daemon and the command line as the processes they are.
            process::run(process::cargo()?.args(["build", "--release", "--package", "gpuemu"]))?;
        }
    }
    if args.is_empty() || args.iter().any(|argument| argument == "machine") {
        let kernels = python_environment::prepare(&python_environment::KERNELS);
        match kernels.and_then(|environment| environment.python()) {
            Ok(python) => {
                command.env("GPUEMU_BENCH_KERNELS_PYTHON", python.get_program());
            }
            Err(failure) => eprintln!("no Triton to measure beside: {failure}"),
        }
    }
    if args.is_empty() || args.iter().any(|argument| argument == "campaign") {
        let frameworks = python_environment::prepare(&python_environment::FRAMEWORKS);
        match frameworks.and_then(|environment| environment.python()) {
            Ok(python) => {
                command.env("GPUEMU_BENCH_RAY_PYTHON", python.get_program());
            }
            Err(failure) => eprintln!("no Ray to measure campaigns on: {failure}"),
        }
    }
    process::run(&mut command)
}

/// Some rows measure NumPy and some the package, from its source and with the programs that belong to it.
fn name_python(command: &mut Command, python: &Command) -> Result<(), Failure> {
    let built = native_module::install()?;
    built.name_to(command);
    command.env("GPUEMU_BENCH_PYTHON", python.get_program());
    Ok(())
}
