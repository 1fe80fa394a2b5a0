//! Wheels of what the package needs, downloaded once: with them it is installed from files alone.

use std::path::{Path, PathBuf};

use crate::cache;
use crate::failure::Failure;
use crate::process;
use crate::python_environment::{DEVELOPMENT, PythonEnvironment};

/// The `dependencies` of `pyproject.toml`.
const NEEDED: &[&str] = &["numpy", "ml_dtypes"];

/// Finds or makes the folder of the wheels, in the versions that the package is checked with.
pub fn prepare(python: &PythonEnvironment) -> Result<PathBuf, Failure> {
    cache::prepared(&format!("wheels-{}", DEVELOPMENT.key()?), |_| true, |folder| download(python, folder))
}

fn download(python: &PythonEnvironment, folder: &Path) -> Result<(), Failure> {
    let mut command = python.python()?;
    command.args(["-m", "pip", "download", "--quiet", "--no-input", "--disable-pip-version-check"]);
    command.args(["--no-deps", "--only-binary", ":all:", "--constraint", DEVELOPMENT.requirements()]);
    process::run(command.arg("--dest").arg(folder).args(NEEDED)).map_err(|failure| {
        Failure::Environment(format!("cannot get the wheels of {}: {failure}", NEEDED.join(" and ")))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::repository;

    #[test]
    fn what_the_package_needs_is_downloaded() {
        let text = std::fs::read_to_string(repository::root().unwrap().join("pyproject.toml")).unwrap();
        let table: toml::Table = text.parse().unwrap();
        let needed = table["project"]["dependencies"].as_array().unwrap().iter();
        let name = |text: &toml::Value| text.as_str().unwrap().split(['>', '=', '<']).next().unwrap().to_string();
        assert_eq!(needed.map(name).collect::<Vec<_>>(), NEEDED);
    }
}
