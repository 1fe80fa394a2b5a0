//! Builds the native module and the programs, and puts the module where Python finds it in the source.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::failure::{Failure, cannot};
use crate::python_environment::SYSTEM_PYTHON;
use crate::{process, repository};

/// Where the module lies in the source folder. Git ignores it.
const INSTALLED: &str = if cfg!(windows) { "python/gpuemu/_native.pyd" } else { "python/gpuemu/_native.abi3.so" };

/// The packages that are built. Not in one command: building them together would choose other features of
/// their dependencies than `cargo run --package gpuemu` and the build of the wheel do, and compile both twice.
const PACKAGES: &[&str] = &["gpuemu", "gpuemu-python"];

pub struct Built {
    module: PathBuf,
    program: PathBuf,
    daemon: PathBuf,
}

impl Built {
    /// Tells the program that is started which command line and which daemon belong to the source.
    pub fn name_to(&self, command: &mut Command) {
        command.env("GPUEMU_TEST_PROGRAM", &self.program).env("GPUEMU_DAEMON", &self.daemon);
    }

    pub fn programs(&self) -> [&Path; 2] {
        [&self.program, &self.daemon]
    }

    /// The folder that cargo builds into.
    pub fn target_folder(&self) -> Result<&Path, Failure> {
        self.program
            .ancestors()
            .nth(2)
            .ok_or_else(|| Failure::Environment(format!("{} lies in no target folder", self.program.display())))
    }
}

/// Builds, and installs the module in the source folder.
pub fn install() -> Result<Built, Failure> {
    let mut messages = String::new();
    for package in PACKAGES {
        let mut command = process::cargo()?;
        command.args(["build", "--release", "--message-format", "json-render-diagnostics", "--package", package]);
        let (text, verdict) = process::run_keeping_output(with_build_settings(&mut command))?;
        verdict?;
        messages.push_str(&text);
    }
    let built = built_by(&messages).map_err(Failure::Check)?;
    replace(&built.module, &repository::root()?.join(INSTALLED))?;
    Ok(built)
}

/// The settings that the build of the wheel uses too: with others, cargo would build the module anew.
pub fn with_build_settings(command: &mut Command) -> &mut Command {
    command.env("PYO3_PYTHON", SYSTEM_PYTHON).env("PYO3_BUILD_EXTENSION_MODULE", "1")
}

/// The program of this name in what cargo reports, a JSON object a line.
pub fn program_in(messages: &str, name: &str) -> Result<PathBuf, String> {
    let path = artifact(messages, "bin", name)?["executable"].as_str().map(PathBuf::from);
    path.ok_or_else(|| format!("cargo does not say where {name} is"))
}

fn artifact(messages: &str, kind: &str, name: &str) -> Result<Value, String> {
    let is_it = |message: &Value| {
        let kinds = message["target"]["kind"].as_array();
        message["reason"] == "compiler-artifact"
            && message["target"]["name"] == name
            && kinds.is_some_and(|kinds| kinds.iter().any(|word| word == kind))
    };
    let mut reported = messages.lines().filter_map(|line| serde_json::from_str(line).ok());
    reported.find(is_it).ok_or_else(|| format!("cargo has not built the {kind} {name}"))
}

/// Finds the files in what cargo reports.
fn built_by(messages: &str) -> Result<Built, String> {
    // Beside the library itself, some systems get files for their linker or debugger.
    let is_library = |path: &&str| [".so", ".dylib", ".dll"].iter().any(|ending| path.ends_with(ending));
    let library = artifact(messages, "cdylib", "_native")?;
    let module = library["filenames"]
        .as_array()
        .and_then(|paths| paths.iter().filter_map(Value::as_str).find(is_library))
        .ok_or("cargo does not say where the native module is")?;
    let (program, daemon) = (program_in(messages, "gpuemu")?, program_in(messages, "gpuemu-daemon")?);
    Ok(Built { module: module.into(), program, daemon })
}

/// Replaces the file in one go: a process that has the old module loaded keeps it, unchanged.
fn replace(source: &Path, destination: &Path) -> Result<(), Failure> {
    let temporary = destination.with_extension(format!("{}.new", std::process::id()));
    fs::copy(source, &temporary).map_err(|error| cannot("write", &temporary.display(), &error))?;
    fs::rename(&temporary, destination).map_err(|error| cannot("write", &destination.display(), &error))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(kind: &str, name: &str, files: &[&str]) -> String {
        let target = serde_json::json!({ "name": name, "kind": [kind] });
        let executable = if kind == "bin" { files.first() } else { None };
        let artifact = serde_json::json!({
            "reason": "compiler-artifact", "target": target, "filenames": files, "executable": executable,
        });
        format!("{artifact}\n")
    }

    #[test]
    fn the_files_are_found_in_what_cargo_reports() {
        let mut messages = message("lib", "gpuemu_model", &["/target/release/libgpuemu_model.rlib"]);
        messages += &message("bin", "gpuemu", &["/target/release/gpuemu"]);
        messages += &message("bin", "gpuemu-daemon", &["/target/release/gpuemu-daemon"]);
        assert_eq!(built_by(&messages).err().unwrap(), "cargo has not built the cdylib _native");
        messages += "{\"reason\":\"build-finished\",\"success\":true}\n";
        messages += &message("cdylib", "_native", &["/target/release/lib_native.dwp", "/target/release/lib_native.so"]);
        let built = built_by(&messages).unwrap();
        assert_eq!(built.module, Path::new("/target/release/lib_native.so"));
        assert_eq!(built.daemon, Path::new("/target/release/gpuemu-daemon"));
        assert_eq!(built.target_folder().unwrap(), Path::new("/target"));
    }
}
