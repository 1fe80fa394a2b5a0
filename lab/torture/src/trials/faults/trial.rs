//! One scenario with or without a fault, in its own process or through the daemon, and what came of it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use gpuemu_wire::Client;
use serde_json::Value;
use tempfile::TempDir;

use super::scenarios::{BEFORE, SCENARIOS, Scenario, make_projects};
use crate::daemon_process::{PATIENCE, command};

/// The gpuemu that can be made to fail.
pub const PROGRAM: &str = "gpuemu-with-faults";

/// The folder of the projects and the home, and what it is before every trial.
const WORK: &str = "work";
const SAVED: &str = "saved";

/// The variable by which a gpuemu notes the places that it passes.
pub const SEEN: &str = "GPUEMU_FAULTS_SEEN";

/// Who does the work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// The command line itself.
    InProcess,
    Daemon,
}

/// What has to go wrong, and when: environment variables.
pub type Armed<'a> = &'a [(&'a str, &'a str)];

/// Projects and a home with results. Every trial begins with a copy of them, in the one folder by which the store knows
/// the projects.
pub struct Ground {
    folder: TempDir,
    python: PathBuf,
    seed: String,
}

/// What came of a trial.
pub struct Came {
    pub status: Option<i32>,
    /// Standard output and the file of the report, each only if there is one.
    pub said: Vec<String>,
    /// The error stream of the command line and the daemon.
    pub errors: String,
    /// What the store says of the run afterwards: the report on it.
    pub stored: Option<Value>,
    /// Whether the daemon still answers; true where there is none, or where it never began to.
    pub answers: bool,
}

impl Ground {
    /// Makes the projects, and runs what later trials read.
    pub fn prepare(python: PathBuf) -> Result<Self, String> {
        let folder = TempDir::new().map_err(|error| error.to_string())?;
        make_projects(&folder.path().join(WORK), &python)?;
        let mut ground = Self { folder, python, seed: String::new() };
        for (project, arguments, status) in BEFORE {
            let mut gpuemu = ground.gpuemu(&ground.work(), "gpuemu", project)?;
            let output = gpuemu.args(*arguments).arg("--no-daemon").stderr(Stdio::piped()).output();
            let output = output.map_err(|error| error.to_string())?;
            if output.status.code() != Some(*status) {
                let words = String::from_utf8_lossy(&output.stderr);
                return Err(format!("`gpuemu {}` ends with {}: {words}", arguments.join(" "), output.status));
            }
        }
        let report = fs::read_to_string(ground.work().join("kernel/run.json")).map_err(|error| error.to_string())?;
        let report: Value = serde_json::from_str(&report).map_err(|error| error.to_string())?;
        let seed = report["ops"][0]["case_results"][0]["case"]["seed"].clone();
        ground.seed = seed.as_str().map_or(seed.to_string(), ToString::to_string);
        fs::rename(ground.work(), ground.folder.path().join(SAVED)).map_err(|error| error.to_string())?;
        Ok(ground)
    }

    fn work(&self) -> PathBuf {
        self.folder.path().join(WORK)
    }

    /// A gpuemu in a project of a copy of the ground.
    pub fn gpuemu(&self, folder: &Path, program: &str, project: &str) -> Result<Command, String> {
        let mut command = command(folder, program)?;
        command.current_dir(folder.join(project)).env("GPUEMU_PYTHON", &self.python).env("NO_COLOR", "1");
        command.env_remove("GITHUB_ACTIONS").env_remove("VIRTUAL_ENV");
        Ok(command)
    }

    /// A copy of a project in a folder of its own.
    pub fn copy_of(&self, project: &str) -> Result<TempDir, String> {
        let copy = TempDir::new().map_err(|error| error.to_string())?;
        let copied = copy_folder(&self.folder.path().join(SAVED).join(project), &copy.path().join(project));
        copied.map_err(|error| error.to_string())?;
        Ok(copy)
    }

    /// Does something on a copy of the ground.
    pub fn try_out(&self, scenario: &Scenario, way: Way, armed: Armed<'_>) -> Result<Came, String> {
        let failed = |error: std::io::Error| format!("{}: {error}", scenario.name);
        let copy = self.work();
        if copy.exists() {
            fs::remove_dir_all(&copy).map_err(failed)?;
        }
        fs::create_dir_all(&copy).map_err(failed)?;
        for name in ["home"].into_iter().filter(|_| scenario.reads).chain([scenario.project]) {
            copy_folder(&self.folder.path().join(SAVED).join(name), &copy.join(name)).map_err(failed)?;
        }
        let log = fs::File::create(copy.join("errors")).map_err(failed)?;
        let log = || log.try_clone().map_err(failed);
        let mut daemon = None;
        let mut came_up = false;
        if way == Way::Daemon {
            let mut command = self.gpuemu(&copy, PROGRAM, scenario.project)?;
            command.args(["daemon", "run"]).envs(armed.iter().copied()).stderr(log()?);
            let mut process = command.spawn().map_err(failed)?;
            came_up = comes_up(&mut process, &copy.join("home/gpuemu.sock"));
            daemon = Some(process);
        }
        let mut command = self.gpuemu(&copy, PROGRAM, scenario.project)?;
        command.args(scenario.arguments.iter().map(|argument| argument.replace("SEED", &self.seed)));
        if way == Way::InProcess {
            command.arg("--no-daemon");
        }
        command.envs(armed.iter().copied()).stdout(Stdio::piped()).stderr(log()?);
        let ran = run_to_end(command, scenario.name);
        // What goes wrong from here on is the question's own: it takes the fault that no request before it met.
        let errors = fs::read(copy.join("errors")).map_err(failed)?;
        let answers = match daemon.as_mut() {
            // Not where places are counted: the question would be counted too.
            Some(process) if came_up && !armed.iter().any(|(name, _)| *name == SEEN) => {
                let socket = copy.join("home/gpuemu.sock");
                let pinged = (0..2).any(|_| Client::connect(&socket, Duration::from_secs(10)).is_ok());
                process.try_wait().is_ok_and(|status| status.is_none()) && pinged
            }
            _ => true,
        };
        if let Some(mut process) = daemon {
            let _ = process.kill();
            let _ = process.wait();
            if !came_up {
                // The command line may have started one of its own.
                let _ = self.gpuemu(&copy, "gpuemu", scenario.project)?.args(["daemon", "stop"]).status();
            }
        }
        let (status, stdout) = ran?;
        let report = scenario.report.map(|report| copy.join(scenario.project).join(report));
        let written = report.and_then(|report| fs::read_to_string(report).ok());
        let stored = if scenario.runs { self.stored(&copy, scenario)? } else { None };
        let said = [Some(stdout).filter(|text| !text.is_empty()), written].into_iter().flatten().collect();
        Ok(Came { status, said, errors: String::from_utf8_lossy(&errors).into_owned(), stored, answers })
    }

    /// What the gpuemu that users have reads in the store afterwards.
    fn stored(&self, folder: &Path, scenario: &Scenario) -> Result<Option<Value>, String> {
        let mut gpuemu = self.gpuemu(folder, "gpuemu", scenario.project)?;
        gpuemu.args(["report", "--format", "json", "--no-daemon"]);
        let output =
            gpuemu.stdout(Stdio::piped()).stderr(Stdio::piped()).output().map_err(|error| error.to_string())?;
        if output.stdout.is_empty() {
            let words = String::from_utf8_lossy(&output.stderr);
            // Nothing was stored: a project that was not run before, whose run broke off at once.
            return if words.contains("no result of this project") { Ok(None) } else { Err(words.into_owned()) };
        }
        serde_json::from_slice(&output.stdout).map(Some).map_err(|error| error.to_string())
    }
}

/// The scenarios, each with the ways that there are.
pub fn trials() -> impl Iterator<Item = (&'static Scenario, Way)> {
    let both = SCENARIOS.iter().flat_map(|scenario| [(scenario, Way::InProcess), (scenario, Way::Daemon)]);
    both.filter(|(scenario, way)| *way == Way::InProcess || !scenario.by_itself)
}

fn comes_up(process: &mut Child, socket: &Path) -> bool {
    let deadline = Instant::now() + PATIENCE;
    while Instant::now() < deadline {
        if matches!(process.try_wait(), Ok(Some(_))) {
            return false;
        }
        // Not asked for anything: a fault that waits for its first request is for the command line to meet.
        if std::os::unix::net::UnixStream::connect(socket).is_ok() {
            return true;
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    false
}

fn run_to_end(mut command: Command, name: &str) -> Result<(Option<i32>, String), String> {
    let mut child = command.spawn().map_err(|error| error.to_string())?;
    let mut stdout = child.stdout.take();
    let reader = std::thread::spawn(move || {
        let mut text = Vec::new();
        stdout.as_mut().map(|stdout| std::io::Read::read_to_end(stdout, &mut text));
        String::from_utf8_lossy(&text).into_owned()
    });
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(status) = child.try_wait().map_err(|error| error.to_string())? {
            return Ok((status.code(), reader.join().unwrap_or_default()));
        }
        if Instant::now() > deadline {
            let _ = child.kill();
            let _ = child.wait();
            return Err(format!("'{name}' hangs"));
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

fn copy_folder(from: &Path, to: &Path) -> std::io::Result<()> {
    fs::create_dir_all(to)?;
    fs::set_permissions(to, fs::metadata(from)?.permissions())?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let place = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy_folder(&entry.path(), &place)?;
        } else if entry.file_type()?.is_file() {
            fs::copy(entry.path(), &place)?;
        }
    }
    Ok(())
}
