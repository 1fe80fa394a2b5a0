//! `cargo xtask bench`: runs the benchmark program of the corpus.

use crate::failure::Failure;
use crate::{process, python_environment};

/// Runs the benchmarks in an optimised build; `args` go to the benchmark program. NumPy is a peer
/// there: where it cannot be had, its figures are missing and everything else is still measured.
pub fn run(args: &[String]) -> Result<(), Failure> {
    // Some rows measure the daemon and the command line as the processes they are.
    process::run(process::cargo()?.args(["build", "--release", "--package", "gpuemu"]))?;
    let mut command = process::cargo()?;
    command.args(["run", "--release", "--package", "gpuemu-corpus", "--example", "bench", "--"]).args(args);
    match python_environment::prepare().and_then(|environment| environment.python()) {
        Ok(python) => {
            command.env("GPUEMU_BENCH_PYTHON", python.get_program());
        }
        Err(failure) => eprintln!("no NumPy to measure beside: {failure}"),
    }
    process::run(&mut command)
}
