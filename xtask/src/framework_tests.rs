//! The Python tests that need a framework: told apart by the names of their files.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::failure::{Failure, cannot};
use crate::python_environment::PythonEnvironment;
use crate::{native_module, process, repository};

const TESTS: &str = "python/tests";

/// The names that file names carry. The step of that name runs them, and no other does.
pub const PYTORCH: &str = "pytorch";
/// Like [`PYTORCH`].
pub const JAX: &str = "jax";
/// Like [`PYTORCH`].
pub const TENSORFLOW: &str = "tensorflow";

/// Like [`PYTORCH`]: references in several frameworks, against those of the engine.
pub const INDEPENDENT: &str = "independent";

/// Like [`PYTORCH`]: campaigns on a cluster, for which Ray is among the frameworks.
pub const RAY: &str = "on_ray";

/// Like [`PYTORCH`]: kernels that are compiled, which the step of that name runs beside the Rust tests of them.
pub const KERNELS: &str = "kernels";

/// Like [`PYTORCH`]: pages of reports, which need a browser in place of a framework.
pub const BROWSER: &str = "browser";

/// The program that writes cases of the engine's references, and the variable by which the tests find it.
const CASES: (&str, &str) = ("reference_cases", "GPUEMU_REFERENCE_CASES");

/// What keeps these files out of the other tests.
pub const WITHOUT_FRAMEWORKS: &[&str] = &[
    "-m",
    "pytest",
    "--ignore-glob=python/tests/test_*pytorch*.py",
    "--ignore-glob=python/tests/test_*jax*.py",
    "--ignore-glob=python/tests/test_*tensorflow*.py",
    "--ignore-glob=python/tests/test_*on_ray*.py",
    "--ignore-glob=python/tests/test_*independent*.py",
    "--ignore-glob=python/tests/test_*kernels*.py",
    "--ignore-glob=python/tests/test_*browser*.py",
];

/// The tests that run the blocks of the documentation, and what its pages may need.
const PAGES: (&str, &[(&str, &[&str])]) =
    ("test_documentation.py", &[(PYTORCH, &["pytorch"]), (RAY, &["ray"]), (KERNELS, &["triton", "cuda"])]);

/// Runs the tests of a framework, and the pages of the documentation that need it.
pub fn run(framework: &str, python: &PythonEnvironment) -> Result<(), Failure> {
    let built = native_module::install()?;
    let pytest = || {
        let mut command = python.python()?;
        built.name_to(&mut command);
        // A test that cannot import its framework skips itself elsewhere. Here it has to fail.
        command.env("GPUEMU_REQUIRE_FRAMEWORKS", "1").args(["-m", "pytest"]);
        Ok(command)
    };
    let files = files_of(framework, &repository::root()?.join(TESTS))?;
    let mut command: Command = pytest()?;
    if framework == INDEPENDENT {
        command.env(CASES.1, reference_cases()?).args(["-n", "2"]);
    }
    command.args(files.iter().map(|file| Path::new(TESTS).join(file)));
    process::run(&mut command)?;
    let (pages, needs) = PAGES;
    for needed in needs.iter().filter(|(name, _)| *name == framework).flat_map(|(_, needed)| *needed) {
        process::run(pytest()?.env("GPUEMU_DOCS_NEEDS", needed).arg(Path::new(TESTS).join(pages)))?;
    }
    Ok(())
}

/// The program that writes cases, as the Rust tests have built it.
fn reference_cases() -> Result<PathBuf, Failure> {
    let mut command = process::cargo()?;
    command.args(["test", "--release", "--workspace", "--no-run", "--message-format", "json-render-diagnostics"]);
    let (text, verdict) = process::run_keeping_output(&mut command)?;
    verdict?;
    let messages = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let program = messages.filter(|message| message["target"]["name"] == CASES.0).find_map(|message| {
        let executable = message["executable"].as_str()?;
        Some(PathBuf::from(executable))
    });
    program.ok_or_else(|| Failure::Check(format!("cargo built no example {}", CASES.0)))
}

/// The names of the files, in order; a framework without any was misspelt, here or there.
fn files_of(framework: &str, folder: &Path) -> Result<Vec<OsString>, Failure> {
    let unreadable = |error| cannot("read", &folder.display(), &error);
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).map_err(unreadable)? {
        let name = entry.map_err(unreadable)?.file_name();
        if is_test_of(framework, &name.to_string_lossy()) {
            files.push(name);
        }
    }
    files.sort();
    if files.is_empty() {
        Err(Failure::Check(format!("no file is named {TESTS}/{}", pattern(framework))))
    } else {
        Ok(files)
    }
}

/// The names as a shell would match them.
pub fn pattern(framework: &str) -> String {
    format!("test_*{framework}*.py")
}

fn is_test_of(framework: &str, name: &str) -> bool {
    let stem = name.strip_prefix("test_").and_then(|name| name.strip_suffix(".py"));
    stem.is_some_and(|stem| stem.contains(framework))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_a_file_says_which_framework_it_needs() {
        assert!(is_test_of(PYTORCH, "test_adapters_pytorch.py"));
        assert!(is_test_of(PYTORCH, "test_framework_pytorch_gradients.py"));
        assert!(!is_test_of(PYTORCH, "test_adapters_jax.py"));
        assert!(!is_test_of(PYTORCH, "pytorch_kernels.py"));
        assert!(!is_test_of(PYTORCH, "test_pytorch.py.orig"));
    }

    #[test]
    fn what_a_framework_runs_the_other_tests_leave_out() {
        for framework in [PYTORCH, JAX, TENSORFLOW, INDEPENDENT, KERNELS, BROWSER] {
            let ignored = format!("--ignore-glob={TESTS}/{}", pattern(framework));
            assert!(WITHOUT_FRAMEWORKS.contains(&ignored.as_str()), "{ignored}");
        }
    }

    #[test]
    fn a_framework_without_tests_is_a_failure() {
        let folder = repository::root().unwrap().join(TESTS);
        let failure = files_of("no-such-framework", &folder).unwrap_err();
        assert_eq!(failure.to_string(), "no file is named python/tests/test_*no-such-framework*.py");
    }
}
