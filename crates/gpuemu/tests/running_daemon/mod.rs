//! The real daemon, in a process and a folder of its own, until dropped.
#![allow(dead_code, reason = "each test file uses its own part")]

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use gpuemu_model::settings::ProjectReference;
use gpuemu_wire::{Client, Connection};
use serde_json::{Value, json};
use tempfile::TempDir;

/// How long anything may take before a test gives up.
pub const PATIENCE: Duration = Duration::from_secs(60);

pub struct RunningDaemon {
    /// Its folder and that of the project are in here.
    pub folder: TempDir,
    process: Child,
}

impl RunningDaemon {
    /// A daemon over a new folder.
    pub fn start() -> Self {
        Self::start_with("")
    }

    /// A daemon with settings of its own.
    pub fn start_with(daemon_toml: &str) -> Self {
        let folder = TempDir::new().unwrap();
        std::fs::create_dir_all(folder.path().join("home")).unwrap();
        std::fs::create_dir_all(folder.path().join("project")).unwrap();
        if !daemon_toml.is_empty() {
            std::fs::write(folder.path().join("home/daemon.toml"), daemon_toml).unwrap();
        }
        let process = spawn(folder.path());
        let daemon = Self { folder, process };
        daemon.wait();
        daemon
    }

    /// Kills the process at once, as a crash would, and starts another one over the same folder.
    pub fn kill_and_restart(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
        self.process = spawn(self.folder.path());
        self.wait();
    }

    /// Kills the process at once.
    pub fn kill(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }

    /// Whether the process is there.
    pub fn lives(&mut self) -> bool {
        self.process.try_wait().unwrap().is_none()
    }

    /// Waits for the process to end by itself.
    pub fn ended(&mut self) -> std::process::ExitStatus {
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Some(status) = self.process.try_wait().unwrap() {
                return status;
            }
            assert!(Instant::now() < deadline, "the daemon did not end");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    fn wait(&self) {
        let deadline = Instant::now() + PATIENCE;
        while Client::connect(&self.socket(), PATIENCE).is_err() {
            assert!(Instant::now() < deadline, "the daemon did not start");
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    pub fn socket(&self) -> PathBuf {
        self.folder.path().join("home/gpuemu.sock")
    }

    pub fn client(&self) -> Client {
        Client::connect(&self.socket(), PATIENCE).unwrap()
    }

    /// A client that sends whatever it is told to.
    pub fn connection(&self) -> Connection {
        Connection::open(&self.socket(), 1 << 30, PATIENCE).unwrap()
    }

    /// A folder without configuration: built-in ops only.
    pub fn project(&self) -> ProjectReference {
        ProjectReference { root: self.folder.path().join("project"), ..ProjectReference::default() }
    }

    /// A project with a configuration and files.
    pub fn project_with(&self, name: &str, files: &[(&str, &str)]) -> ProjectReference {
        let root = self.folder.path().join(name);
        write_files(&root, files);
        let python = std::env::var_os("GPUEMU_TEST_PYTHON").map(PathBuf::from);
        ProjectReference { config: Some(root.join("gpuemu.toml")), root, digest: None, python }
    }
}

/// Writes files of a project.
pub fn write_files(root: &Path, files: &[(&str, &str)]) {
    for (name, text) in files {
        let path = root.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
}

fn spawn(folder: &Path) -> Child {
    Command::new(env!("CARGO_BIN_EXE_gpuemu-daemon"))
        .arg("--detached")
        .env("GPUEMU_HOME", folder.join("home"))
        .env("XDG_CONFIG_HOME", folder.join("config"))
        .env_remove("GPUEMU_SOCKET")
        .env_remove("GPUEMU_CONFIG")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

impl Drop for RunningDaemon {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Sends JSON and returns the answer.
pub fn ask(connection: &mut Connection, request: &Value) -> Value {
    ask_bytes(connection, request.to_string().as_bytes())
}

/// Sends bytes and returns the answer.
pub fn ask_bytes(connection: &mut Connection, request: &[u8]) -> Value {
    serde_json::from_slice(&connection.request(request, PATIENCE).unwrap()).unwrap()
}

/// A tensor of float32 as base64, all of one value.
pub fn tensor(shape: &[usize], value: f64) -> Value {
    let values = vec![value; shape.iter().product()];
    let tensor = gpuemu_tensor::Tensor::from_f64(gpuemu_tensor::DType::F32, shape.to_vec(), &values).unwrap();
    serde_json::to_value(gpuemu_model::tensor_data::TensorData::base64(&tensor)).unwrap()
}

/// A right answer of `relu` for a project, to be spoilt.
pub fn relu(project: &ProjectReference) -> Value {
    json!({
        "type": "ValidateOp", "project": project, "op_name": "relu",
        "inputs": { "input": tensor(&[2, 3], 1.0) }, "output": tensor(&[2, 3], 1.0),
    })
}

/// The Python that tests may start: `cargo xtask test` names it. In CI it must be there.
#[allow(clippy::print_stderr, reason = "says which test was skipped")]
pub fn python() -> Option<PathBuf> {
    let python = std::env::var_os("GPUEMU_TEST_PYTHON").map(PathBuf::from);
    let in_ci = std::env::var_os("CI").is_some_and(|value| value == "true");
    assert!(python.is_some() || !in_ci, "GPUEMU_TEST_PYTHON is not set; run the tests by `cargo xtask test`");
    if python.is_none() {
        eprintln!("skipped: GPUEMU_TEST_PYTHON is not set; `cargo xtask test` sets it");
    }
    python
}
