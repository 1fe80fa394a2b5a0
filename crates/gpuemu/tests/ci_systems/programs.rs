//! Programs of the system that scripts start.

use std::path::PathBuf;
use std::process::Command;

/// Whether one of these is missing, and the test is to be skipped. In CI none may be: `cargo xtask test` installs them.
pub fn missing(programs: &[&str]) -> bool {
    let lacks = |program: &&&str| Command::new(program).arg("--version").output().is_err();
    let Some(program) = programs.iter().find(lacks) else { return false };
    let in_ci = std::env::var_os("CI").is_some_and(|value| value == "true");
    assert!(!in_ci, "{program} is not installed");
    eprintln!("skipped: {program} is not installed");
    true
}

/// The folders of the system's programs. A gpuemu that is installed there is not the one that is tried.
pub fn search_path() -> Vec<PathBuf> {
    let folders = std::env::var_os("PATH").unwrap();
    std::env::split_paths(&folders).filter(|folder| !folder.join("gpuemu").exists()).collect()
}
