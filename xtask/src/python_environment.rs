//! The virtual environments that the Python steps run in. They lie in the cache.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use crate::environment_key::{Interpreter, environment_key};
use crate::failure::{Failure, cannot};
use crate::{cache, process, repository};

/// What goes into an environment.
pub struct Packages {
    /// The file that pins them.
    requirements: &'static str,
    /// More options for pip.
    options: &'static [&'static str],
    /// The oldest Python that they run on.
    oldest_python: (u32, u32),
}

impl Packages {
    /// The file that pins them.
    pub fn requirements(&self) -> &'static str {
        self.requirements
    }

    /// A name that stands for them, and for the system's Python.
    pub fn key(&self) -> Result<String, Failure> {
        let requirements = fs::read_to_string(repository::root()?.join(self.requirements))
            .map_err(|error| cannot("read", &self.requirements, &error))?;
        Ok(environment_key(&requirements, self.options, &system_interpreter(self.oldest_python)?))
    }
}

/// What the package itself is checked with.
pub const DEVELOPMENT: Packages =
    Packages { requirements: "python/requirements-dev.txt", options: &[], oldest_python: (3, 10) };

/// The frameworks that kernels are written with. The file lists all that is needed on a CPU; what the
/// frameworks ask for beyond that, several GB for GPUs, is left out.
pub const FRAMEWORKS: Packages = Packages {
    requirements: "python/requirements-frameworks.txt",
    options: &["--no-deps", "--only-binary", ":all:"],
    oldest_python: (3, 11),
};

/// NVIDIA's tools and compilers, and Triton. Nothing that they ask for beyond the list is needed without a GPU.
pub const KERNELS: Packages = Packages {
    requirements: "python/requirements-kernels.txt",
    options: &["--no-deps", "--only-binary", ":all:"],
    oldest_python: (3, 10),
};

/// What the site of the documentation is built with.
pub const DOCUMENTATION: Packages = Packages {
    requirements: "python/requirements-docs.txt",
    options: &["--no-deps", "--only-binary", ":all:"],
    oldest_python: (3, 10),
};

/// The Python that the environments are made with.
pub const SYSTEM_PYTHON: &str = if cfg!(windows) { "python" } else { "python3" };

/// An environment that holds the pinned packages.
#[derive(Debug)]
pub struct PythonEnvironment {
    interpreter: PathBuf,
}

impl PythonEnvironment {
    /// The environment that lies in this folder, whether or not it is there.
    pub fn in_folder(folder: &Path) -> Self {
        Self { interpreter: program_in(folder, "python") }
    }

    /// A command that runs the environment's Python in the root of the repository.
    pub fn python(&self) -> Result<Command, Failure> {
        process::in_repository(&self.interpreter)
    }
}

/// Finds or makes the environment with these packages.
pub fn prepare(packages: &Packages) -> Result<PythonEnvironment, Failure> {
    let folder = cache::prepared(&packages.key()?, starts, |folder| build(folder, packages))?;
    Ok(PythonEnvironment::in_folder(&folder))
}

fn system_interpreter(oldest: (u32, u32)) -> Result<Interpreter, Failure> {
    let (oldest_major, oldest_minor) = oldest;
    let output =
        Command::new(SYSTEM_PYTHON).args(["-c", Interpreter::QUERY]).stderr(Stdio::inherit()).output().map_err(
            |error| {
                let needed = format!("Python {oldest_major}.{oldest_minor} or newer is needed");
                Failure::Environment(format!("{needed}, and {SYSTEM_PYTHON} cannot be started: {error}"))
            },
        )?;
    let interpreter: Interpreter = String::from_utf8_lossy(&output.stdout).parse().map_err(Failure::Environment)?;
    interpreter.check_age(oldest).map_err(Failure::Environment)?;
    Ok(interpreter)
}

/// Where a virtual environment keeps a program.
pub fn program_in(folder: &Path, name: &str) -> PathBuf {
    let programs = folder.join(if cfg!(windows) { "Scripts" } else { "bin" });
    programs.join(format!("{name}{}", env::consts::EXE_SUFFIX))
}

/// An environment links to the Python that made it, and that one may be gone since.
fn starts(folder: &Path) -> bool {
    let mut command = Command::new(program_in(folder, "python"));
    let status = command.args(["-c", ""]).stdout(Stdio::null()).stderr(Stdio::null()).status();
    status.is_ok_and(|status| status.success())
}

/// Builds in place, because a virtual environment cannot be moved once it is made.
fn build(folder: &Path, packages: &Packages) -> Result<(), Failure> {
    let started = Instant::now();
    // Standard output belongs to the command that needs the environment.
    eprintln!("making the Python environment {}", folder.display());
    let environment = PythonEnvironment::in_folder(folder);
    let mut create = process::in_repository(SYSTEM_PYTHON)?;
    create.args(["-m", "venv"]).arg(folder);
    process::run(&mut create).map_err(|failure| unavailable("a virtual environment", &failure))?;

    let mut install = environment.python()?;
    install.args(["-m", "pip", "install", "--quiet", "--no-input", "--disable-pip-version-check"]);
    install.args(packages.options).args(["--requirement", packages.requirements]);
    process::run(&mut install).map_err(|failure| unavailable("the pinned packages", &failure))?;

    eprintln!("the Python environment is ready after {:.1} s", started.elapsed().as_secs_f64());
    Ok(())
}

/// A failure to make the environment says nothing about the source, whatever pip's exit code.
fn unavailable(what: &str, failure: &Failure) -> Failure {
    Failure::Environment(format!("cannot get {what}: {failure}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_starts_in_a_folder_that_does_not_exist() {
        assert!(!starts(Path::new("/a-folder-that-does-not-exist")));
    }
}
