//! A project as a request names it: its configuration, read now, and the Python that it runs in.

use std::path::{Path, PathBuf};

use gpuemu_config::failure::Failure;
use gpuemu_config::{Config, Environment, load_file};
use gpuemu_model::error_code::ErrorCode;
use gpuemu_model::settings::ProjectReference;
use gpuemu_runners::executor::Interpreter;

#[derive(Debug, Clone)]
pub struct Project {
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
            Some(file) => load_file(inside(&root, &reference.root, file)?, environment)?,
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

/// The configuration of a project, as a message names it: nothing outside the project's folder is opened.
fn inside(root: &Path, named_root: &Path, file: &Path) -> Result<PathBuf, Failure> {
    let path = named_root.join(file);
    let folder = path.parent().unwrap_or(named_root);
    // A folder that is not there is an error of reading the file, which says more.
    let real = std::fs::canonicalize(folder).unwrap_or_else(|_| root.to_path_buf());
    match path.file_name() {
        Some(_) if real.starts_with(root) => Ok(path),
        _ => {
            let message = format!("the configuration {} lies outside the project {}", path.display(), root.display());
            Err(Failure::new(ErrorCode::ConfigError, message).hint("name the folder that it lies in as the project"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_configuration_outside_the_project_is_not_opened() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("project");
        std::fs::create_dir_all(root.join("below")).unwrap();
        std::fs::write(root.join("gpuemu.toml"), "[project]\nname = \"p\"\n").unwrap();
        std::fs::write(root.join("below/other.toml"), "[project]\nname = \"q\"\n").unwrap();
        std::fs::write(folder.path().join("secret.toml"), "secret = 1\n").unwrap();
        std::os::unix::fs::symlink(folder.path(), root.join("out")).unwrap();
        let environment = Environment::default();
        let open = |file: &Path| {
            let reference = ProjectReference { config: Some(file.to_path_buf()), ..ProjectReference::default() };
            Project::open(&ProjectReference { root: root.clone(), ..reference }, &environment)
        };
        for file in ["gpuemu.toml", "below/other.toml", "below/../gpuemu.toml"] {
            open(Path::new(file)).unwrap();
        }
        open(&root.join("gpuemu.toml")).unwrap();
        let absolute = folder.path().join("secret.toml");
        for file in [Path::new("../secret.toml"), Path::new("out/secret.toml"), &absolute, Path::new("..")] {
            let failure = open(file).unwrap_err();
            assert!(failure.message.contains("outside the project"), "{}", failure.message);
            assert!(!failure.message.contains("secret = 1"), "{}", failure.message);
        }
    }
}
