//! The real daemon in a process of its own, for rows that measure it from a client's process.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use gpuemu_model::settings::ProjectReference;
use gpuemu_wire::Client;
use tempfile::TempDir;

/// How long a request may take.
pub const PATIENCE: Duration = Duration::from_secs(600);

/// A program of the package `gpuemu`, built beside this one.
pub fn program(name: &str) -> Option<PathBuf> {
    let here = std::env::current_exe().ok()?;
    let path = here.parent()?.parent()?.join(name);
    if path.is_file() {
        return Some(path);
    }
    eprintln!("{} is not there: run this by `cargo xtask bench`", path.display());
    None
}

/// The daemon, until dropped.
pub struct DaemonProcess {
    folder: TempDir,
    process: Child,
}

impl DaemonProcess {
    /// Starts one over a new folder.
    pub fn start() -> Option<Self> {
        let folder = TempDir::new().ok()?;
        let process = Command::new(program("gpuemu-daemon")?)
            .arg("--detached")
            .env("GPUEMU_HOME", folder.path().join("home"))
            .env("XDG_CONFIG_HOME", folder.path().join("config"))
            .stdin(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .ok()?;
        let daemon = Self { folder, process };
        let deadline = Instant::now() + Duration::from_secs(20);
        while daemon.client().is_none() {
            if Instant::now() > deadline {
                eprintln!("the daemon did not start");
                return None;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        Some(daemon)
    }

    pub fn socket(&self) -> PathBuf {
        self.folder.path().join("home/gpuemu.sock")
    }

    pub fn client(&self) -> Option<Client> {
        Client::connect(&self.socket(), PATIENCE).ok()
    }

    /// A folder of this name with these files; its configuration is `gpuemu.toml`, if that is one of them.
    pub fn project(&self, name: &str, files: &[(&str, &str)]) -> Option<ProjectReference> {
        let root = self.folder.path().join(name);
        std::fs::create_dir_all(&root).ok()?;
        for (file, text) in files {
            std::fs::write(root.join(file), text).ok()?;
        }
        let config = root.join("gpuemu.toml");
        let config = Path::new(&config).is_file().then_some(config);
        let python = std::env::var_os("GPUEMU_BENCH_PYTHON").map(PathBuf::from);
        Some(ProjectReference { root, config, digest: None, python })
    }
}

impl Drop for DaemonProcess {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
