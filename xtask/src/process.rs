//! Starts the programs that the steps consist of.

use std::env;
use std::ffi::OsStr;
use std::path;
use std::process::{Command, ExitStatus, Stdio};

use gpuemu_process::instruction_cap;

use crate::failure::Failure;
use crate::repository;

/// A command that runs `program` in the root of the repository. Frameworks that it may start execute nothing that the
/// processor refuses.
pub fn in_repository(program: impl AsRef<OsStr>) -> Result<Command, Failure> {
    let mut command = Command::new(program);
    command.current_dir(repository::root()?);
    instruction_cap::apply(&mut command);
    Ok(command)
}

/// A command that runs the cargo which started this program.
pub fn cargo() -> Result<Command, Failure> {
    let mut command = in_repository(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))?;
    // Cargo reads a relative target folder against its own working folder, which may be another
    // than the one this program was started in: two target folders would compile everything twice.
    if let Some(target) = env::var_os("CARGO_TARGET_DIR").filter(|target| !target.is_empty()) {
        let absolute = path::absolute(&target).map_err(|error| {
            Failure::Environment(format!("cannot resolve CARGO_TARGET_DIR={}: {error}", target.display()))
        })?;
        command.env("CARGO_TARGET_DIR", absolute);
    }
    // What is built once and never again gains nothing from being prepared for the next time.
    if is_ci() {
        command.env("CARGO_INCREMENTAL", "0");
    }
    Ok(command)
}

/// Whether this runs in CI, where nothing is skipped and the system may be changed.
pub fn is_ci() -> bool {
    env::var_os("CI").is_some_and(|value| value == "true")
}

/// Prints the command, runs it with its output going straight through, and fails unless it succeeds.
pub fn run(command: &mut Command) -> Result<(), Failure> {
    announce(command);
    let status = command.status().map_err(|error| cannot_start(command, &error))?;
    succeeded(command, status)
}

/// Like [`run`], but keeps standard output and returns it with the verdict on the exit status.
pub fn run_keeping_output(command: &mut Command) -> Result<(String, Result<(), Failure>), Failure> {
    announce(command);
    let output = command.stderr(Stdio::inherit()).output().map_err(|error| cannot_start(command, &error))?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    Ok((text, succeeded(command, output.status)))
}

/// Like [`run_keeping_output`], with standard error too, behind standard output.
pub fn run_keeping_everything(command: &mut Command) -> Result<(String, Result<(), Failure>), Failure> {
    announce(command);
    let output = command.stdin(Stdio::null()).output().map_err(|error| cannot_start(command, &error))?;
    let text = [output.stdout, output.stderr].map(|part| String::from_utf8_lossy(&part).into_owned()).concat();
    Ok((text, succeeded(command, output.status)))
}

/// The command as one would type it, with the program's name in place of its path.
pub fn command_line(command: &Command) -> String {
    let program = path::Path::new(command.get_program());
    let name = program.file_stem().unwrap_or(program.as_os_str());
    std::iter::once(name).chain(command.get_args()).map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
}

fn announce(command: &Command) {
    // Standard output belongs to the program that is started.
    eprintln!("$ {}", command_line(command));
}

fn cannot_start(command: &Command, error: &std::io::Error) -> Failure {
    Failure::Environment(format!("cannot start {}: {error}", command.get_program().display()))
}

fn succeeded(command: &Command, status: ExitStatus) -> Result<(), Failure> {
    if status.success() {
        return Ok(());
    }
    Err(Failure::Check(format!("`{}` ended with {status}", command_line(command))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_line_names_the_program_without_its_folder() {
        let mut command = Command::new("/some/folder/python");
        command.args(["-m", "pytest"]);
        assert_eq!(command_line(&command), "python -m pytest");
    }

    #[test]
    fn a_program_that_is_missing_is_no_failed_check() {
        let missing = run(&mut Command::new("a-program-that-does-not-exist"));
        assert!(matches!(missing, Err(Failure::Environment(_))), "{missing:?}");
    }

    #[test]
    fn a_program_that_fails_is_a_failed_check() {
        let mut command = cargo().unwrap();
        command.arg("no-such-subcommand").stderr(Stdio::null());
        let failed = run(&mut command);
        assert!(matches!(failed, Err(Failure::Check(_))), "{failed:?}");
    }

    #[test]
    fn standard_output_is_kept() {
        let mut command = cargo().unwrap();
        command.arg("--version");
        let (text, verdict) = run_keeping_output(&mut command).unwrap();
        assert!(text.starts_with("cargo "), "{text}");
        assert!(verdict.is_ok());
    }
}
