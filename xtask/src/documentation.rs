//! `cargo xtask docs`: the documentation as a site. Every link and every anchor in it has to lead somewhere.

use crate::failure::Failure;
use crate::python_environment::PythonEnvironment;
use crate::{process, python_environment};

/// What the site is built with, as one would type it.
pub const COMMAND: &str = "python -m mkdocs build --strict";

/// Builds the site in an environment of its own, and says where it is.
pub fn run() -> Result<(), Failure> {
    build(&python_environment::prepare(&python_environment::DOCUMENTATION)?)?;
    println!("the site is in target/site: open target/site/index.html");
    Ok(())
}

/// Builds the site; a warning is a failure.
pub fn build(python: &PythonEnvironment) -> Result<(), Failure> {
    // The reference of the package is read from its source, which is not imported.
    let mut command = python.python()?;
    // The theme announces its successor; see decision 35.
    command.env("NO_MKDOCS_2_WARNING", "1").args(["-m", "mkdocs", "build", "--strict", "--quiet"]);
    process::run(&mut command)
}
