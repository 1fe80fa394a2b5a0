//! The VS Code extension: checked and packaged, and tried in a real VS Code.

use std::fs;
use std::path::{Path, PathBuf};

use crate::failure::{Failure, cannot};
use crate::node_environment::{EXTENSION, NodeEnvironment};
use crate::python_environment::PythonEnvironment;
use crate::{native_module, process, repository, system_packages};

/// Bytes that the bundle may have.
const LARGEST_BUNDLE: u64 = 200 * 1024;

const PACKAGE: &str = "dist/gpuemu.vsix";

/// What the steps run, as one would type it.
pub const CHECK_COMMANDS: &str = "npm ci, npm run compile, npm run lint, npm test, npx vsce package";
pub const SESSION_COMMAND: &str = "npm run end-to-end";

/// Compiles, lints, tests and packages.
pub fn check(node: &NodeEnvironment) -> Result<(), Failure> {
    package(node)?;
    npm(node, &["run", "lint"])?;
    npm(node, &["test"])?;
    let bundle = folder()?.join("dist/extension.js");
    let bytes = fs::metadata(&bundle).map_err(|error| cannot("read", &bundle.display(), &error))?.len();
    println!("the bundle has {bytes} bytes");
    match bytes {
        0..LARGEST_BUNDLE => Ok(()),
        _ => Err(Failure::Check(format!("the bundle has {bytes} bytes, more than {LARGEST_BUNDLE}"))),
    }
}

/// Runs the end-to-end session; where there is no browser, the answer says so. In CI there is one.
pub fn session(
    node: &NodeEnvironment,
    code_server: &Path,
    python: &PythonEnvironment,
) -> Result<Option<String>, Failure> {
    if process::is_ci() {
        system_packages::install(system_packages::BROWSER)?;
    } else if let Some(missing) = system_packages::missing(system_packages::BROWSER) {
        return Ok(Some(missing));
    }
    let extension = package(node)?;
    let mut command = node.command("npm")?;
    command.args(["run", "--silent", "end-to-end"]);
    native_module::install()?.name_to(&mut command);
    command
        .env("GPUEMU_TEST_CODE_SERVER", code_server)
        .env("GPUEMU_TEST_EXTENSION", extension)
        .env("GPUEMU_TEST_PYTHON", python.python()?.get_program());
    process::run(&mut command)?;
    Ok(None)
}

/// Makes the package, without a word of warning.
pub fn package(node: &NodeEnvironment) -> Result<PathBuf, Failure> {
    install_packages(node)?;
    let dist = folder()?.join("dist");
    fs::create_dir_all(&dist).map_err(|error| cannot("create", &dist.display(), &error))?;
    let mut command = node.command("npx")?;
    command.args(["vsce", "package", "--out", PACKAGE]).env("NO_COLOR", "1");
    let (text, verdict) = process::run_keeping_everything(&mut command)?;
    print!("{text}");
    verdict?;
    match warning_in(&text) {
        Some(line) => Err(Failure::Check(format!("vsce warns: {line}"))),
        None => Ok(folder()?.join(PACKAGE)),
    }
}

/// The first line in which vsce warns of something.
fn warning_in(text: &str) -> Option<&str> {
    text.lines().map(str::trim).find(|line| line.starts_with("WARNING"))
}

/// Installs the pinned packages, unless those that are there are the ones.
fn install_packages(node: &NodeEnvironment) -> Result<(), Failure> {
    let pinned = folder()?.join("package-lock.json");
    let pinned = fs::read(&pinned).map_err(|error| cannot("read", &pinned.display(), &error))?;
    let installed = folder()?.join("node_modules/.gpuemu-package-lock.json");
    if fs::read(&installed).is_ok_and(|installed| installed == pinned) {
        return Ok(());
    }
    npm(node, &["ci", "--loglevel", "error"])?;
    fs::write(&installed, pinned).map_err(|error| cannot("write", &installed.display(), &error))
}

fn npm(node: &NodeEnvironment, arguments: &[&str]) -> Result<(), Failure> {
    process::run(node.command("npm")?.args(arguments))
}

fn folder() -> Result<PathBuf, Failure> {
    Ok(repository::root()?.join(EXTENSION))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn warnings_of_vsce_are_found() {
        let said = " INFO  Files included in the VSIX:\n WARNING  A 'repository' field is missing\n DONE  Packaged\n";
        assert_eq!(warning_in(said), Some("WARNING  A 'repository' field is missing"));
        assert_eq!(warning_in(" DONE  Packaged: WARNING.vsix\n"), None);
    }
}
