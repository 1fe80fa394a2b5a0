//! A project as a request names it: its configuration, read now, and the Python that it runs in.

use std::path::PathBuf;

use gpuemu_common::config::{Config, Environment, load_file};
use gpuemu_common::protocol::{ErrorCode, ProjectReference};

use crate::executor::Interpreter;
use crate::failure::Failure;

/// A project.
#[derive(Debug, Clone)]
pub struct Project {
    /// Its configuration.
    pub config: Config,
    /// What its results are kept under.
    pub key: String,
    /// The Python that scripts and modules run in.
    pub interpreter: Interpreter,
}

impl Project {
    /// Reads the project that a request names.
    pub fn open(reference: &ProjectReference, environment: &Environment) -> Result<Self, Failure> {
        let unreadable = |error: std::io::Error| {
            let message = format!("the project's folder {} cannot be read: {error}", reference.root.display());
            Failure::new(ErrorCode::ConfigError, message)
        };
        let root = std::fs::canonicalize(&reference.root).map_err(unreadable)?;
        let config = match &reference.config {
            Some(file) => load_file(root.join(file), environment)?,
            None => Config::without_file(root.clone()),
        };
        if let Some(digest) = reference.digest.as_ref().filter(|digest| **digest != config.digest) {
            let message = format!(
                "the configuration of {} is not the one that the client read ({} here, {digest} there)",
                root.display(),
                config.digest
            );
            let hint =
                "run the command again; if that does not help, stop the daemon, which may see other user settings";
            return Err(Failure::new(ErrorCode::ConfigError, message).hint(hint));
        }
        Ok(Self::with_config(config, root, reference.python.clone()))
    }

    /// The project in a folder, with a configuration that was read.
    pub fn with_config(mut config: Config, root: PathBuf, python: Option<PathBuf>) -> Self {
        config.root.clone_from(&root);
        let interpreter = Interpreter {
            python: python.unwrap_or_else(|| PathBuf::from("python3")),
            root: root.clone(),
            memory_bytes: config.daemon.script_memory,
            output_bytes: config.daemon.message_bytes,
        };
        Self { key: root.to_string_lossy().into_owned(), config, interpreter }
    }
}
