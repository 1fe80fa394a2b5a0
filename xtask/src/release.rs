//! `cargo xtask release`: everything that users install, in one folder with checksums.

use std::env::consts::{ARCH, OS};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use sha2::{Digest, Sha256};

use crate::failure::{Failure, cannot};
use crate::native_module::{self, Built};
use crate::{extension, node_environment, package, process, python_environment, repository};

/// The version of every crate, and of the package.
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// What comes with the programs.
const BESIDE: &[&str] = &["README.md", "CHANGELOG.md", "SECURITY.md", "LICENSE-MIT", "LICENSE-APACHE"];

/// Shells that completions are written for, and what each calls the file.
const SHELLS: &[(&str, &str)] = &[("bash", "gpuemu.bash"), ("zsh", "_gpuemu"), ("fish", "gpuemu.fish")];

/// The checksums, as `sha256sum --check` reads them.
const CHECKSUMS: &str = "SHA256SUMS";

/// Builds the wheel and its source archive, the programs and the extension.
pub fn run() -> Result<(), Failure> {
    let python = python_environment::prepare(&python_environment::DEVELOPMENT)?;
    let node = node_environment::prepare()?;
    let built = native_module::install()?;
    let folder = built.target_folder()?.join("dist");
    package::remove(&folder)?;
    fs::create_dir_all(&folder).map_err(|error| cannot("create", &folder.display(), &error))?;
    package::build(&python, built.target_folder()?, &folder)?;
    programs(&built, &folder)?;
    let extension = extension::package(&node)?;
    copy(&extension, &folder.join(format!("gpuemu-{VERSION}.vsix")))?;
    let sums = checksums(&folder)?;
    write(&folder.join(CHECKSUMS), sums.as_bytes())?;
    print!("{}:\n{sums}", folder.display());
    Ok(())
}

/// An archive of the programs, with manual pages and completions that they write themselves.
fn programs(built: &Built, folder: &Path) -> Result<(), Failure> {
    let name = format!("gpuemu-{VERSION}-{ARCH}-{OS}");
    let content = folder.join(&name);
    let completions = content.join("completions");
    fs::create_dir_all(&completions).map_err(|error| cannot("create", &completions.display(), &error))?;
    for program in built.programs() {
        let copied = content.join(program.file_name().unwrap_or_default());
        copy(program, &copied)?;
        // Symbols are for those who build it; without `strip` they stay.
        let _ = Command::new("strip").arg(&copied).status();
    }
    let gpuemu = content.join("gpuemu");
    process::run(Command::new(&gpuemu).arg("man").arg("--output").arg(content.join("man")))?;
    for (shell, file) in SHELLS {
        let (script, verdict) = process::run_keeping_output(Command::new(&gpuemu).args(["completions", shell]))?;
        verdict?;
        write(&completions.join(file), script.as_bytes())?;
    }
    let root = repository::root()?;
    for file in BESIDE {
        copy(&root.join(file), &content.join(file))?;
    }
    let mut archive = Command::new("tar");
    archive.arg("-C").arg(folder).args(["-czf"]).arg(folder.join(format!("{name}.tar.gz"))).arg(&name);
    process::run(&mut archive)?;
    package::remove(&content)
}

/// A line for each file of a folder.
fn checksums(folder: &Path) -> Result<String, Failure> {
    let unreadable = |error| cannot("read", &folder.display(), &error);
    let mut files: Vec<PathBuf> = Vec::new();
    for entry in fs::read_dir(folder).map_err(unreadable)? {
        files.push(entry.map_err(unreadable)?.path());
    }
    files.sort();
    let mut lines = String::new();
    for file in files {
        let bytes = fs::read(&file).map_err(|error| cannot("read", &file.display(), &error))?;
        let digest: String = Sha256::digest(&bytes).iter().map(|byte| format!("{byte:02x}")).collect();
        lines.push_str(&format!("{digest}  {}\n", file.file_name().unwrap_or_default().to_string_lossy()));
    }
    Ok(lines)
}

fn copy(from: &Path, to: &Path) -> Result<(), Failure> {
    fs::copy(from, to).map(|_| ()).map_err(|error| cannot("copy", &from.display(), &error))
}

fn write(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    fs::write(path, bytes).map_err(|error| cannot("write", &path.display(), &error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checksums_are_those_that_the_usual_program_reads() {
        let folder = std::env::temp_dir().join(format!("gpuemu-checksums-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("b"), b"abc").unwrap();
        fs::write(folder.join("a"), b"").unwrap();
        let lines = checksums(&folder).unwrap();
        fs::remove_dir_all(&folder).unwrap();
        let (empty, abc) = (
            "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
        );
        assert_eq!(lines, format!("{empty}  a\n{abc}  b\n"));
    }
}
