//! Builds the wheel from the source archive, installs it into an empty environment and uses it the way its users do.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::failure::{Failure, cannot};
use crate::native_module::{self, with_build_settings};
use crate::python_environment::{PythonEnvironment, program_in};
use crate::{process, repository, wheels};

/// What it runs, in words.
pub const COMMANDS: &str = "python -m pip wheel of the source archive, install the wheel, run the README's Python examples and \
                            what `gpuemu init --ci` writes";

/// What setuptools keeps beside the source. From there it takes files into an archive that nothing names any more.
const DESCRIPTION: &str = "python/gpuemu.egg-info";

/// Checks that the archives hold what they should.
const CONTENTS_SCRIPT: &str = "python/tests/package_contents.py";

/// Runs the Python examples of the README.
const EXAMPLE_SCRIPT: &str = "python/tests/readme_example.py";

/// The version of every crate, and of the package.
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Unpacks an archive. Cargo runs a build script again for a folder that is newer than what the script made: folders are
/// made as old as the newest file in them.
const UNPACK_PROGRAM: &str = "
import os, sys, tarfile

archive, destination = sys.argv[1:]
with tarfile.open(archive) as source:
    source.extractall(destination)
for parent, folders, files in os.walk(destination, topdown=False):
    newest = max((os.stat(os.path.join(parent, name)).st_mtime_ns for name in folders + files), default=0)
    os.utime(parent, ns=(newest, newest))
";

/// The tests that install gpuemu, as machines do that have nothing of it. Of the whole workspace, as the other Rust tests:
/// cargo would build everything anew for one of its packages.
const CI_TESTS: &[&str] =
    &["test", "--release", "--workspace", "--test", "ci_systems", "--", "fresh_machines::", "installation::"];

/// Fails unless the wheel can be built, installed and used.
pub fn run(python: &PythonEnvironment) -> Result<(), Failure> {
    // What is built here the wheel is made of: cargo finds it up to date.
    let built = native_module::install()?;
    let target = built.target_folder()?;
    let folder = target.join("package");
    let (archives, environment) = (folder.join("archives"), folder.join("environment"));
    // An old wheel could be taken for the new one.
    remove(&folder)?;
    fs::create_dir_all(&archives).map_err(|error| cannot("create", &archives.display(), &error))?;

    let wheel = build(python, target, &archives)?;
    let needed = wheels::prepare(python)?;
    let installed = install(python, &wheel, &needed, &environment)?;
    for program in ["gpuemu", "gpuemu-daemon"] {
        check_version(&program_in(&environment, program))?;
    }
    let import = format!(
        "import gpuemu, gpuemu._native as native; from importlib.metadata import version; \
         versions = {{gpuemu.__version__, native.VERSION, version('gpuemu')}}; assert versions == {{'{VERSION}'}}, versions"
    );
    process::run(as_a_user(installed.python()?.args(["-I", "-c", &import])))?;
    process::run(as_a_user(installed.python()?.arg(EXAMPLE_SCRIPT)))?;

    let mut tests = process::cargo()?;
    tests.env("GPUEMU_TEST_PYTHON", python.python()?.get_program());
    process::run(tests.env("GPUEMU_TEST_WHEEL", &wheel).env("GPUEMU_TEST_WHEELS", &needed).args(CI_TESTS))
}

/// Builds the source archive into a folder and, from nothing else, the wheel; looks into both; the wheel. Cargo builds
/// into this target folder.
pub fn build(python: &PythonEnvironment, target: &Path, folder: &Path) -> Result<PathBuf, Failure> {
    let source = build_source_archive(python, folder)?;
    let wheel = build_wheel(python, &source, target, folder)?;
    process::run(python.python()?.arg(CONTENTS_SCRIPT).args([&wheel, &source]))?;
    Ok(wheel)
}

fn build_wheel(python: &PythonEnvironment, archive: &Path, target: &Path, wheels: &Path) -> Result<PathBuf, Failure> {
    // A build of other files could be taken for one of these.
    let unpacked = target.join("package/source");
    remove(&unpacked)?;
    process::run(python.python()?.args(["-c", UNPACK_PROGRAM]).arg(archive).arg(&unpacked))?;
    let source = unpacked.join(format!("gpuemu-{VERSION}"));
    let mut command = python.python()?;
    // What builds it is pinned in the environment: a download would be another version one day.
    command.args(["-m", "pip", "wheel", "--quiet", "--no-input", "--disable-pip-version-check"]);
    command.args(["--no-deps", "--no-build-isolation", "--wheel-dir"]).arg(wheels).arg(source);
    // The cargo that everything else is built with. It finds what it has built of the same files in another folder.
    let cargo = process::cargo()?;
    command.env("CARGO", cargo.get_program());
    command.envs(cargo.get_envs().filter_map(|(name, value)| Some((name, value?))));
    process::run(with_build_settings(command.env("CARGO_TARGET_DIR", target)))?;
    only_file(wheels, ".whl")
}

fn build_source_archive(python: &PythonEnvironment, folder: &Path) -> Result<PathBuf, Failure> {
    remove(&repository::root()?.join(DESCRIPTION))?;
    let mut command = python.python()?;
    let program = "import sys; from setuptools import build_meta; build_meta.build_sdist(sys.argv[1])";
    let (text, verdict) = process::run_keeping_output(command.args(["-c", program]).arg(folder))?;
    if verdict.is_err() {
        // A list of files, and of interest only when something is wrong.
        println!("{}", text.trim_end());
    }
    verdict?;
    only_file(folder, ".tar.gz")
}

fn only_file(folder: &Path, ending: &str) -> Result<PathBuf, Failure> {
    let unreadable = |error| cannot("read", &folder.display(), &error);
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).map_err(unreadable)? {
        let path = entry.map_err(unreadable)?.path();
        if path.to_string_lossy().ends_with(ending) {
            found.push(path);
        }
    }
    match &found[..] {
        [only] => Ok(only.clone()),
        _ => Err(Failure::Check(format!("{} holds {} files *{ending} in place of one", folder.display(), found.len()))),
    }
}

/// Installs the wheel, and the wheels that it needs, into an empty environment.
fn install(
    python: &PythonEnvironment,
    wheel: &Path,
    needed: &Path,
    folder: &Path,
) -> Result<PythonEnvironment, Failure> {
    process::run(python.python()?.args(["-m", "venv"]).arg(folder))?;
    let installed = PythonEnvironment::in_folder(folder);
    let mut install = installed.python()?;
    install.args(["-m", "pip", "install", "--quiet", "--no-input", "--disable-pip-version-check"]);
    process::run(install.args(["--no-index", "--find-links"]).arg(needed).arg(wheel))?;
    Ok(installed)
}

fn check_version(program: &Path) -> Result<(), Failure> {
    let mut command = Command::new(program);
    let (text, verdict) = process::run_keeping_output(command.arg("--version"))?;
    verdict?;
    if text.split_whitespace().last() == Some(VERSION) {
        return Ok(());
    }
    Err(Failure::Check(format!("`{} --version` printed {text:?}, not {VERSION}", program.display())))
}

/// Takes away what would let the package find the source, or a daemon other than its own.
fn as_a_user(command: &mut Command) -> &mut Command {
    for name in ["PYTHONPATH", "GPUEMU_DAEMON", "GPUEMU_TEST_PROGRAM", "GPUEMU_TEST_PYTHON"] {
        command.env_remove(name);
    }
    command
}

/// Removes a folder, if it is there.
pub fn remove(folder: &Path) -> Result<(), Failure> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(cannot("remove", &folder.display(), &error)),
        _ => Ok(()),
    }
}
