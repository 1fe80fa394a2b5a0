//! Finding and reading the files.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use super::check::check;
use super::error::{ConfigError, Source};
use super::kernels::{Kernel, LintTable, resolve_kernel};
use super::resolve::{Config, Daemon, ListSources, Storage, resolve, resolve_daemon, resolve_storage};
use super::tables::{ConfigFile, LogLevel};

/// The environment variables that decide where things are.
#[derive(Debug, Clone, Default)]
pub struct Environment {
    variables: HashMap<String, String>,
}

const PROJECT_FILE: &str = "gpuemu.toml";

/// The largest configuration file.
const MOST_BYTES: u64 = 16 << 20;

impl Environment {
    /// The variables of this process.
    pub fn of_process() -> Self {
        Self {
            variables: std::env::vars_os()
                .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
                .collect(),
        }
    }

    pub fn of(variables: &[(&str, &str)]) -> Self {
        let owned = variables.iter().map(|(name, value)| (name.to_string(), value.to_string()));
        Self { variables: owned.collect() }
    }

    fn get(&self, name: &str) -> Option<&str> {
        self.variables.get(name).map(String::as_str).filter(|value| !value.is_empty())
    }

    /// gpuemu's own folder: `GPUEMU_HOME`, or `.gpuemu` in the user's.
    pub fn home(&self) -> Option<PathBuf> {
        self.get("GPUEMU_HOME").map(PathBuf::from).or_else(|| Some(Path::new(self.get("HOME")?).join(".gpuemu")))
    }

    /// The daemon's socket: `GPUEMU_SOCKET`, or `gpuemu.sock` in gpuemu's folder.
    pub fn socket(&self) -> Option<PathBuf> {
        self.get("GPUEMU_SOCKET").map(PathBuf::from).or_else(|| Some(self.home()?.join("gpuemu.sock")))
    }

    /// The user's own defaults.
    pub fn user_file(&self) -> Option<PathBuf> {
        let folder = self.get("XDG_CONFIG_HOME").map(PathBuf::from);
        let folder = folder.or_else(|| Some(Path::new(self.get("HOME")?).join(".config")))?;
        Some(folder.join("gpuemu").join("config.toml"))
    }

    /// The project's file, where `GPUEMU_CONFIG` names it.
    pub fn project_file(&self) -> Option<PathBuf> {
        self.get("GPUEMU_CONFIG").map(PathBuf::from)
    }

    /// What is logged, where `GPUEMU_LOG_LEVEL` says so.
    pub fn log_level(&self) -> Result<Option<LogLevel>, ConfigError> {
        let Some(value) = self.get("GPUEMU_LOG_LEVEL") else { return Ok(None) };
        let level = match value.to_ascii_lowercase().as_str() {
            "error" => LogLevel::Error,
            "warn" => LogLevel::Warn,
            "info" => LogLevel::Info,
            "debug" => LogLevel::Debug,
            "trace" => LogLevel::Trace,
            _ => {
                let allowed = "error, warn, info, debug or trace";
                return Err(ConfigError::Variable { name: "GPUEMU_LOG_LEVEL", value: value.to_string(), allowed });
            }
        };
        Ok(Some(level))
    }

    /// Whether colours are unwanted.
    pub fn no_color(&self) -> bool {
        self.get("NO_COLOR").is_some() || self.get("GPUEMU_NO_COLOR").is_some()
    }
}

/// The `gpuemu.toml` of a folder or the nearest one above it.
pub fn find_project_file(start: &Path) -> Option<PathBuf> {
    start.ancestors().map(|folder| folder.join(PROJECT_FILE)).find(|path| path.is_file())
}

/// Reads, checks and merges the configuration for work in the folder `start`.
pub fn load(start: &Path, environment: &Environment) -> Result<Config, ConfigError> {
    let named = environment.project_file().map(|path| start.join(path));
    let path = named.or_else(|| find_project_file(start));
    let path = path.ok_or_else(|| ConfigError::NotFound { start: start.to_path_buf() })?;
    load_file(path, environment)
}

/// Reads, checks and merges the configuration whose project file is known.
pub fn load_file(path: PathBuf, environment: &Environment) -> Result<Config, ConfigError> {
    load_source(read(&path)?, environment)
}

/// Checks and merges the configuration with this text in place of what is in the project file, as an editor has it
/// before it is saved.
pub fn load_text(path: PathBuf, text: String, environment: &Environment) -> Result<Config, ConfigError> {
    load_source(Source { path, text }, environment)
}

fn load_source(project: Source, environment: &Environment) -> Result<Config, ConfigError> {
    let path = project.path.clone();
    let mut sources = vec![project];
    for other in others(environment) {
        sources.push(read(&other)?);
    }
    let mut digest = gpuemu_tensor::rng::blake2b(16).to_state();
    let mut merged = ConfigFile::default();
    let (mut ops, mut expected_failures) = (None, None);
    for source in &sources {
        digest.update(source.text.as_bytes()).update(&[0]);
        let file: ConfigFile = toml::from_str(&source.text).map_err(|error| source.unparsed(&error))?;
        check(&file, source)?;
        ops = ops.or(file.ops.is_some().then_some(source));
        expected_failures = expected_failures.or(file.expected_failures.is_some().then_some(source));
        merged = merged.over(file);
    }
    if let Some(level) = environment.log_level()? {
        merged.daemon.get_or_insert_default().log_level = Some(level);
    }
    let root = path.parent().map(Path::to_path_buf).unwrap_or_default();
    let digest = digest.finalize().to_hex().to_string();
    let project = &sources[0];
    let lists = ListSources { ops: ops.unwrap_or(project), expected_failures: expected_failures.unwrap_or(project) };
    resolve(merged, &lists, root, path, digest)
}

/// The kernels of a text that holds nothing else, such as the launch tables of compiled kernels.
pub fn kernels_of(name: &str, text: &str) -> Result<Vec<Kernel>, ConfigError> {
    let source = Source { path: PathBuf::from(name), text: text.to_string() };
    let file: ConfigFile = toml::from_str(&source.text).map_err(|error| source.unparsed(&error))?;
    check(&file, &source)?;
    let lint = LintTable::default();
    let kernels = file.kernels.into_iter().flatten();
    Ok(kernels.map(|kernel| resolve_kernel(kernel, &lint, &source)).collect())
}

/// The settings of the daemon itself, which belongs to no project: the user's and the daemon's files.
pub fn load_daemon(environment: &Environment) -> Result<(Daemon, Storage), ConfigError> {
    let mut merged = ConfigFile::default();
    for path in others(environment) {
        let source = read(&path)?;
        let file: ConfigFile = toml::from_str(&source.text).map_err(|error| source.unparsed(&error))?;
        check(&file, &source)?;
        merged = merged.over(file);
    }
    let mut daemon = resolve_daemon(merged.daemon.unwrap_or_default());
    if let Some(level) = environment.log_level()? {
        daemon.log_level = level;
    }
    Ok((daemon, resolve_storage(merged.storage.unwrap_or_default())))
}

/// The files beside the project's that are there, the first before the second.
fn others(environment: &Environment) -> impl Iterator<Item = PathBuf> {
    let files = [environment.user_file(), environment.home().map(|home| home.join("daemon.toml"))];
    files.into_iter().flatten().filter(|path| path.exists())
}

fn read(path: &Path) -> Result<Source, ConfigError> {
    let unreadable = |message: String| ConfigError::Unreadable { path: path.to_path_buf(), message };
    let failed = |error: std::io::Error| unreadable(error.to_string());
    // A device or a pipe has no end, and a client may name any.
    let metadata = std::fs::metadata(path).map_err(failed)?;
    if !metadata.is_file() {
        return Err(unreadable("it is no file".to_string()));
    }
    if metadata.len() > MOST_BYTES {
        return Err(unreadable(format!("it has {} bytes, at most {MOST_BYTES} are read", metadata.len())));
    }
    let text = std::fs::read_to_string(path).map_err(failed)?;
    Ok(Source { path: path.to_path_buf(), text })
}
