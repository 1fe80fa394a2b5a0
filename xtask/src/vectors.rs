//! `cargo xtask vectors`: writes or checks the test vectors that Rust and Python share.

use crate::failure::Failure;
use crate::steps::VECTORS_SCRIPT;
use crate::{native_module, process, python_environment};

/// Runs the script that makes the vectors.
pub fn run(check: bool) -> Result<(), Failure> {
    let mut command = python_environment::prepare(&python_environment::DEVELOPMENT)?.python()?;
    // The script imports the package, and the package may import its native module.
    native_module::install()?.name_to(&mut command);
    command.arg(VECTORS_SCRIPT).args(check.then_some("--check"));
    process::run(&mut command)
}
