//! Where NVIDIA's tools are looked for.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::schema::JsonSchema;

/// Where tools are looked for. It travels with a request: the daemon may have been started with another environment.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ToolSearch {
    /// The folders of PATH, in order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub path: Vec<PathBuf>,
    /// The folder of the CUDA toolkit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cuda_home: Option<PathBuf>,
    /// The Python whose packages may have tools.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub python: Option<PathBuf>,
}

impl ToolSearch {
    /// What the environment of this process says: PATH, then CUDA_HOME or CUDA_PATH.
    pub fn of_process(python: Option<PathBuf>) -> Self {
        // A relative folder means another place to every process.
        let path = std::env::var_os("PATH").unwrap_or_default();
        let path = std::env::split_paths(&path).filter(|folder| folder.is_absolute()).collect();
        let home = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|folder| folder.is_absolute());
        Self { path, cuda_home: home("CUDA_HOME").or_else(|| home("CUDA_PATH")), python }
    }
}
