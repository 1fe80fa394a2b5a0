//! The virtual environments that the Python steps run in.
//!
//! They lie in the user's cache folder under names that stand for their content, so that a fresh
//! clone finds the ones that an earlier clone has made and downloads nothing.

use std::env;
use std::ffi::OsString;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use crate::environment_key::{Interpreter, environment_key};
use crate::failure::{Failure, cannot};
use crate::{process, repository};

/// What goes into an environment.
pub struct Packages {
    /// The file that pins them.
    requirements: &'static str,
    /// More options for pip.
    options: &'static [&'static str],
    /// The oldest Python that they run on.
    oldest_python: (u32, u32),
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

/// Written last: a folder without it is the remains of an interrupted attempt.
const COMPLETION_MARKER: &str = "gpuemu-complete";

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
    let requirements = fs::read_to_string(repository::root()?.join(packages.requirements))
        .map_err(|error| cannot("read", &packages.requirements, &error))?;
    let key = environment_key(&requirements, packages.options, &system_interpreter(packages.oldest_python)?);
    let cache = cache_folder(env::var_os("XDG_CACHE_HOME"), env::home_dir())?;
    fs::create_dir_all(&cache).map_err(|error| cannot("create", &cache.display(), &error))?;

    // Two clones may get here at once, and only one of them may build. The lock is let go when
    // the file is closed, at the end of this function at the latest.
    let lock_path = cache.join(format!("{key}.lock"));
    let lock = File::create(&lock_path).map_err(|error| cannot("create", &lock_path.display(), &error))?;
    lock.lock().map_err(|error| cannot("lock", &lock_path.display(), &error))?;

    let folder = cache.join(&key);
    let environment = PythonEnvironment::in_folder(&folder);
    if !is_complete(&folder) {
        build(&folder, &environment, packages)?;
    }
    Ok(environment)
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

/// The project's folder in the user's cache folder.
fn cache_folder(cache_home: Option<OsString>, home: Option<PathBuf>) -> Result<PathBuf, Failure> {
    // The base-directory specification has relative paths ignored.
    let explicit = cache_home.map(PathBuf::from).filter(|path| path.is_absolute());
    let conventional = || home.filter(|path| path.is_absolute()).map(|path| path.join(".cache"));
    let user_cache = explicit.or_else(conventional).ok_or_else(|| {
        Failure::Environment("neither XDG_CACHE_HOME nor HOME says where the Python environment may lie".into())
    })?;
    Ok(user_cache.join("gpuemu"))
}

/// Where a virtual environment keeps a program.
pub fn program_in(folder: &Path, name: &str) -> PathBuf {
    let programs = folder.join(if cfg!(windows) { "Scripts" } else { "bin" });
    programs.join(format!("{name}{}", env::consts::EXE_SUFFIX))
}

fn is_complete(folder: &Path) -> bool {
    // An environment links to the Python that made it, and that one may be gone since.
    let starts = || {
        let mut command = Command::new(program_in(folder, "python"));
        let status = command.args(["-c", ""]).stdout(Stdio::null()).stderr(Stdio::null()).status();
        status.is_ok_and(|status| status.success())
    };
    folder.join(COMPLETION_MARKER).is_file() && starts()
}

/// Builds in place, because a virtual environment cannot be moved once it is made.
fn build(folder: &Path, environment: &PythonEnvironment, packages: &Packages) -> Result<(), Failure> {
    let started = Instant::now();
    println!("making the Python environment {}", folder.display());
    if folder.exists() {
        fs::remove_dir_all(folder).map_err(|error| cannot("remove", &folder.display(), &error))?;
    }
    let mut create = process::in_repository(SYSTEM_PYTHON)?;
    create.args(["-m", "venv"]).arg(folder);
    process::run(&mut create).map_err(|failure| unavailable("a virtual environment", &failure))?;

    let mut install = environment.python()?;
    install.args(["-m", "pip", "install", "--quiet", "--no-input", "--disable-pip-version-check"]);
    install.args(packages.options).args(["--requirement", packages.requirements]);
    process::run(&mut install).map_err(|failure| unavailable("the pinned packages", &failure))?;

    let marker = folder.join(COMPLETION_MARKER);
    File::create(&marker).map_err(|error| cannot("create", &marker.display(), &error))?;
    println!("the Python environment is ready after {:.1} s", started.elapsed().as_secs_f64());
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
    fn the_cache_folder_follows_the_base_directory_specification() {
        let home = || Some(PathBuf::from("/home/someone"));
        let folder = |cache_home: Option<&str>, home| cache_folder(cache_home.map(OsString::from), home).ok();
        assert_eq!(folder(Some("/cache"), home()), Some("/cache/gpuemu".into()));
        assert_eq!(folder(None, home()), Some("/home/someone/.cache/gpuemu".into()));
        assert_eq!(folder(Some(""), home()), Some("/home/someone/.cache/gpuemu".into()));
        assert_eq!(folder(Some("relative"), home()), Some("/home/someone/.cache/gpuemu".into()));
        assert_eq!(folder(None, None), None);
    }

    #[test]
    fn a_folder_that_does_not_exist_is_not_complete() {
        assert!(!is_complete(Path::new("/a-folder-that-does-not-exist")));
    }
}
