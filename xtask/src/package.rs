//! Builds the wheel, installs it into an environment of its own and uses it the way its users do.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::failure::{Failure, cannot};
use crate::native_module::{self, with_build_settings};
use crate::python_environment::{PythonEnvironment, program_in};
use crate::{process, repository};

/// Where setuptools collects what goes into the wheel; `setup.cfg` says so.
const COLLECTED: &str = "target/python";

/// Checks that the archives hold what they should.
const CONTENTS_SCRIPT: &str = "python/tests/package_contents.py";

/// Runs the Python examples of the README.
const EXAMPLE_SCRIPT: &str = "python/tests/readme_example.py";

/// The version of every crate, and of the package.
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Fails unless the wheel can be built, installed and used.
pub fn run(python: &PythonEnvironment) -> Result<(), Failure> {
    // What is built here the wheel is made of: cargo finds it up to date.
    let folder = native_module::install()?.target_folder()?.join("package");
    let (wheels, environment) = (folder.join("wheels"), folder.join("environment"));
    // An old wheel could be taken for the new one.
    remove(&folder)?;
    fs::create_dir_all(&wheels).map_err(|error| cannot("create", &wheels.display(), &error))?;

    let wheel = build(python, &wheels)?;
    let installed = install(python, &wheel, &environment)?;
    for program in ["gpuemu", "gpuemu-daemon"] {
        check_version(&program_in(&environment, program))?;
    }
    let import = format!(
        "import gpuemu, gpuemu._native as native; from importlib.metadata import version; \
         versions = {{gpuemu.__version__, native.VERSION, version('gpuemu')}}; assert versions == {{'{VERSION}'}}, versions"
    );
    process::run(as_a_user(installed.python()?.args(["-I", "-c", &import])))?;
    process::run(as_a_user(installed.python()?.arg(EXAMPLE_SCRIPT)))
}

/// Builds the wheel and the source archive into a folder, and looks into both; the wheel.
pub fn build(python: &PythonEnvironment, folder: &Path) -> Result<PathBuf, Failure> {
    let wheel = build_wheel(python, folder)?;
    let source = build_source_archive(python, folder)?;
    process::run(python.python()?.arg(CONTENTS_SCRIPT).args([&wheel, &source]))?;
    Ok(wheel)
}

fn build_wheel(python: &PythonEnvironment, wheels: &Path) -> Result<PathBuf, Failure> {
    // Modules that were deleted since would still be collected.
    remove(&repository::root()?.join(COLLECTED))?;
    let mut command = python.python()?;
    // What builds it is pinned in the environment: a download would be another version one day.
    command.args(["-m", "pip", "wheel", "--quiet", "--no-input", "--disable-pip-version-check"]);
    command.args(["--no-deps", "--no-build-isolation", "--wheel-dir"]).arg(wheels).arg(".");
    // The cargo, and the target folder, that everything else is built with.
    let cargo = process::cargo()?;
    command.env("CARGO", cargo.get_program());
    command.envs(cargo.get_envs().filter_map(|(name, value)| Some((name, value?))));
    process::run(with_build_settings(&mut command))?;
    only_file(wheels, ".whl")
}

fn build_source_archive(python: &PythonEnvironment, folder: &Path) -> Result<PathBuf, Failure> {
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

/// Installs the wheel into a new environment, which finds everything else in the one that is there already.
fn install(python: &PythonEnvironment, wheel: &Path, folder: &Path) -> Result<PythonEnvironment, Failure> {
    process::run(python.python()?.args(["-m", "venv"]).arg(folder))?;
    let installed = PythonEnvironment::in_folder(folder);
    let mut install = installed.python()?;
    install.args(["-m", "pip", "install", "--quiet", "--no-input", "--disable-pip-version-check"]);
    process::run(install.args(["--no-index", "--no-deps"]).arg(wheel))?;

    let mut packages = python.python()?;
    packages.args([
        "-c",
        "import sysconfig; print(*{sysconfig.get_path(kind) for kind in ('purelib', 'platlib')}, sep='\\n')",
    ]);
    let (folders, verdict) = process::run_keeping_output(&mut packages)?;
    verdict?;
    let link = "import pathlib, sys, sysconfig; \
        pathlib.Path(sysconfig.get_path('purelib'), 'shared.pth').write_text(sys.argv[1])";
    process::run(installed.python()?.args(["-c", link, &folders]))?;
    // What the wheel says that it needs is what it was given.
    process::run(installed.python()?.args(["-m", "pip", "check", "--disable-pip-version-check"]))?;
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
