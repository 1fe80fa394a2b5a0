//! Where a project and the daemon are, as every client of gpuemu finds them.

use std::path::PathBuf;

use gpuemu_config::{ConfigError, Environment};
use gpuemu_model::settings::ProjectReference;
use pyo3::exceptions::PyOSError;
use pyo3::prelude::*;

use crate::client_error::{config_error, exception};

/// What requests name the project of a folder by, as JSON: the nearest `gpuemu.toml` decides, and where
/// there is none, the folder itself with the built-in ops.
#[pyfunction]
pub fn project_reference(py: Python<'_>, folder: PathBuf, python: PathBuf) -> PyResult<String> {
    let environment = Environment::of_process();
    let start = std::path::absolute(&folder)?;
    if !start.exists() {
        let message = format!("there is no folder {} for a project", start.display());
        return Err(exception(py, "ClientError", "ConfigError", &message, None));
    }
    let loaded = match start.is_file() {
        true => gpuemu_config::load_file(start.clone(), &environment),
        false => gpuemu_config::load(&start, &environment),
    };
    let reference = match loaded {
        Ok(config) => ProjectReference {
            root: std::path::absolute(&config.root)?,
            config: Some(std::path::absolute(&config.file)?),
            digest: Some(config.digest),
            python: Some(python),
        },
        Err(ConfigError::NotFound { .. }) => {
            ProjectReference { root: start, python: Some(python), ..ProjectReference::default() }
        }
        Err(error) => return Err(config_error(py, &error)),
    };
    serde_json::to_string(&reference).map_err(|error| PyOSError::new_err(error.to_string()))
}

/// The daemon's socket as the environment says; `None` where it says nothing, not even the user's folder.
#[pyfunction]
pub fn default_socket() -> Option<PathBuf> {
    Environment::of_process().socket()
}
