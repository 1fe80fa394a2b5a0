//! `cargo xtask bench`: runs the benchmark program of the corpus.

use crate::failure::Failure;
use crate::process;

/// Runs the benchmarks in an optimised build; `args` go to the benchmark program.
pub fn run(args: &[String]) -> Result<(), Failure> {
    let mut command = process::cargo()?;
    command.args(["run", "--release", "--package", "gpuemu-corpus", "--example", "bench", "--"]).args(args);
    process::run(&mut command)
}
