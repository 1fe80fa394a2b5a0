//! The project that a command is about, and who does its work: the daemon, or this process.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use gpuemu_config::{Config, ConfigError, Environment};
use gpuemu_model::artifact::ToolSearch;
use gpuemu_model::settings::ProjectReference;
use gpuemu_service::home::HomeError;
use gpuemu_service::{Service, ServiceError};
use gpuemu_wire::client::{refused, run_job};
use gpuemu_wire::protocol::{JobStatus, Request, Response};
use gpuemu_wire::start::{self, StartError};
use gpuemu_wire::{Client, ClientError};

use crate::expected_error::ExpectedError;
use crate::progress::Progress;

/// How long the daemon may take to start.
const START_TIME: Duration = Duration::from_secs(20);

/// How long one request may take; what takes longer is a job.
const REQUEST_TIME: Duration = Duration::from_secs(600);

/// Options of every command.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct GlobalOptions {
    /// Do the work in this process, without the daemon.
    #[arg(long, global = true)]
    pub no_daemon: bool,
    /// Say nothing on stderr but errors.
    #[arg(long, short, global = true)]
    pub quiet: bool,
}

/// Who does the work.
enum Backend {
    Daemon(Client),
    InProcess(Arc<Service>),
}

/// A project and who does its work.
pub struct Session {
    pub config: Config,
    reference: ProjectReference,
    backend: Backend,
    quiet: bool,
}

/// Set by the first interrupt; the second one ends the process.
static INTERRUPTED: AtomicBool = AtomicBool::new(false);

impl Session {
    /// The configuration of the current folder's project, for what needs nobody to do any work.
    pub fn configuration() -> Result<Config, ExpectedError> {
        Ok(gpuemu_config::load(&current_folder()?, &Environment::of_process())?)
    }

    /// The project of the current folder.
    pub fn open(options: &GlobalOptions) -> Result<Self, ExpectedError> {
        let environment = Environment::of_process();
        let config = Self::configuration()?;
        let reference = reference_to(&config)?;
        let backend = Backend::open(&environment, options)?;
        Ok(Self { config, reference, backend, quiet: options.quiet })
    }

    /// The project of a folder, worked on in this process, with a folder of its own for what is stored.
    pub fn apart(folder: &Path, home: &Path, quiet: bool) -> Result<Self, ExpectedError> {
        let environment = Environment::of_process();
        let config = gpuemu_config::load(folder, &environment)?;
        let reference = reference_to(&config)?;
        let service = Service::open(home, "gpuemu corpus", environment)
            .map_err(|error| ExpectedError::plain(error.to_string()))?;
        Ok(Self { config, reference, backend: Backend::InProcess(service), quiet })
    }

    /// What requests name the project by.
    pub fn project(&self) -> ProjectReference {
        self.reference.clone()
    }

    /// Where NVIDIA's tools are looked for. The daemon may have been started with another environment.
    pub fn tools(&self) -> ToolSearch {
        ToolSearch::of_process(self.reference.python.clone())
    }

    /// Reads the configuration again.
    pub fn reload(&mut self) -> Result<(), ExpectedError> {
        let environment = Environment::of_process();
        self.config = gpuemu_config::load(&current_folder()?, &environment)?;
        self.reference = reference_to(&self.config)?;
        // A daemon that had nothing to do for long has ended: another one is started.
        if let Backend::Daemon(client) = &mut self.backend
            && client.call(&Request::Ping { protocol_version: None }).is_err()
        {
            *client = connect_or_start(&environment, self.quiet)?;
        }
        Ok(())
    }

    /// Asks for something short.
    pub fn call(&mut self, request: &Request) -> Result<Response, ExpectedError> {
        Ok(self.backend.call(request)?)
    }

    /// Asks for something long, with progress on stderr. An interrupt stops it and keeps what was done.
    pub fn run(&mut self, request: Request) -> Result<Response, ExpectedError> {
        let mut progress = Progress::start(self.quiet);
        INTERRUPTED.store(false, Ordering::Relaxed);
        // Without a handler an interrupt ends this process, and the job goes on without it.
        let _ = ctrlc::set_handler(|| {
            if INTERRUPTED.swap(true, Ordering::Relaxed) {
                gpuemu_runners::executor::end_all();
                std::process::exit(130);
            }
        });
        let watch = |status: &JobStatus| {
            progress.show(status);
            !INTERRUPTED.load(Ordering::Relaxed)
        };
        let backend = &mut self.backend;
        let answer = run_job(|request| backend.call(request), request, watch);
        progress.finish();
        Ok(answer?)
    }

    /// Whether nothing but errors is wanted on stderr.
    pub fn is_quiet(&self) -> bool {
        self.quiet
    }

    /// Says something that is not the result, unless nothing but errors is wanted.
    pub fn say(&self, text: &str) {
        if !self.quiet {
            note(text);
        }
    }

    /// Whether the user wants to stop.
    pub fn interrupted() -> bool {
        INTERRUPTED.load(Ordering::Relaxed)
    }
}

impl Backend {
    fn open(environment: &Environment, options: &GlobalOptions) -> Result<Self, ExpectedError> {
        if !options.no_daemon {
            return Ok(Backend::Daemon(connect_or_start(environment, options.quiet)?));
        }
        let home = environment.home().ok_or_else(no_home)?;
        // Without it, a process that leaves its group outlives this one: no reason not to work.
        let _ = gpuemu_runners::executor::adopt_orphans();
        let service = Service::open(&home, "gpuemu --no-daemon", environment.clone()).map_err(|error| {
            let hint = "leave --no-daemon out to use the daemon, or stop it with `gpuemu daemon stop`";
            let in_use = matches!(error, ServiceError::Home(HomeError::InUse { .. }));
            ExpectedError { message: error.to_string(), hint: in_use.then(|| hint.to_string()) }
        })?;
        Ok(Backend::InProcess(service))
    }

    fn call(&mut self, request: &Request) -> Result<Response, ClientError> {
        match self {
            Backend::Daemon(client) => client.call(request),
            Backend::InProcess(service) => refused(service.answer(request.clone(), &[]).response),
        }
    }
}

fn no_home() -> ExpectedError {
    ExpectedError::new("cannot locate gpuemu's home directory: neither GPUEMU_HOME nor HOME is set", "set GPUEMU_HOME")
}

pub fn current_folder() -> Result<PathBuf, ExpectedError> {
    std::env::current_dir().map_err(|error| ExpectedError::plain(format!("the current folder cannot be read: {error}")))
}

fn reference_to(config: &Config) -> Result<ProjectReference, ExpectedError> {
    let root = std::path::absolute(&config.root)?;
    let file = std::path::absolute(&config.file)?;
    let python = Some(python_of(&root));
    Ok(ProjectReference { root, config: Some(file), digest: Some(config.digest.clone()), python })
}

/// The Python of a project: the one that is named, that of an active or local virtual environment, or
/// the first `python3` of the search path. The daemon may have been started with another search path.
pub fn python_of(root: &Path) -> PathBuf {
    let variable = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    if let Some(named) = variable("GPUEMU_PYTHON") {
        return named;
    }
    let environments = variable("VIRTUAL_ENV").into_iter().chain([root.join(".venv")]);
    let mut candidates: Vec<PathBuf> = environments.map(|folder| folder.join("bin").join("python3")).collect();
    let search = std::env::var_os("PATH").unwrap_or_default();
    candidates.extend(std::env::split_paths(&search).map(|folder| folder.join("python3")));
    candidates.into_iter().find(|path| path.is_file()).unwrap_or_else(|| PathBuf::from("python3"))
}

/// Connects to the daemon, if one listens.
pub fn connect(environment: &Environment) -> Result<Option<Client>, ExpectedError> {
    let socket = environment.socket().ok_or_else(no_home)?;
    Ok(start::connect(&socket, REQUEST_TIME)?)
}

/// Connects to the daemon, which is started if need be.
pub fn connect_or_start(environment: &Environment, quiet: bool) -> Result<Client, ExpectedError> {
    let socket = environment.socket().ok_or_else(no_home)?;
    let connected = start::connect_or_start(&socket, REQUEST_TIME, START_TIME, || {
        let mut command = Command::new(std::env::current_exe()?);
        command.args(["daemon", "run", "--detached"]);
        Ok(command)
    })?;
    if let Some(process) = connected.started.filter(|_| !quiet) {
        note(&format!("started the daemon (process {process})"));
    }
    Ok(connected.client)
}

/// Says something that is not the result.
#[allow(clippy::print_stderr, reason = "notes go to stderr")]
pub fn note(text: &str) {
    anstream::eprintln!("{text}");
}

impl From<ClientError> for ExpectedError {
    fn from(error: ClientError) -> Self {
        match error {
            ClientError::Refused { message, hint, .. } => ExpectedError { message, hint },
            ClientError::Version { .. } => ExpectedError::new(
                error.to_string(),
                "end the old daemon with `gpuemu daemon stop`; a new one is started when it is needed",
            ),
            other => ExpectedError::new(other.to_string(), "see `gpuemu daemon logs`, or use --no-daemon"),
        }
    }
}

impl From<StartError> for ExpectedError {
    fn from(error: StartError) -> Self {
        let message = error.to_string();
        match error {
            StartError::Client(error) => error.into(),
            StartError::Spawn(_) => ExpectedError::plain(message),
            StartError::Ended { .. } => ExpectedError::new(message, "--no-daemon does the work in this process"),
            StartError::TooSlow(_) => ExpectedError::new(message, "see `gpuemu daemon logs`, or use --no-daemon"),
        }
    }
}

impl From<ConfigError> for ExpectedError {
    fn from(error: ConfigError) -> Self {
        let hint = match &error {
            ConfigError::NotFound { .. } => Some("`gpuemu init` makes one".to_string()),
            _ => None,
        };
        ExpectedError { message: error.to_string(), hint }
    }
}
