//! The real daemon in a process and a folder of its own, killed and started again at will.

use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use gpuemu_model::settings::ProjectReference;
use gpuemu_wire::Client;
use tempfile::TempDir;

/// How long anything may take before it counts as hung.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// The user that a trial of root's becomes where a user without rights is needed.
pub const NOBODY: u32 = 65_534;

/// A program of the package `gpuemu`, built beside this one.
pub fn program(name: &str) -> Result<PathBuf, String> {
    let here = std::env::current_exe().map_err(|error| format!("this program is not to be found: {error}"))?;
    let path = here.with_file_name(name);
    if path.is_file() { Ok(path) } else { Err(format!("{name} is not built: run this by `cargo xtask torture`")) }
}

/// The Python with NumPy, named by `cargo xtask torture` and `cargo xtask test`.
pub fn python() -> Option<PathBuf> {
    std::env::var_os("GPUEMU_TEST_PYTHON").map(PathBuf::from)
}

/// The daemon, until dropped.
pub struct DaemonProcess {
    /// Its folder and those of projects are in here.
    pub folder: TempDir,
    process: Child,
}

impl DaemonProcess {
    /// Starts one over a new folder.
    pub fn start() -> Result<Self, String> {
        Self::start_with("")
    }

    /// Starts one with settings of its own.
    pub fn start_with(settings: &str) -> Result<Self, String> {
        let folder = TempDir::new().map_err(|error| error.to_string())?;
        let home = folder.path().join("home");
        std::fs::create_dir_all(&home).map_err(|error| error.to_string())?;
        if !settings.is_empty() {
            std::fs::write(home.join("daemon.toml"), settings).map_err(|error| error.to_string())?;
        }
        let process = command(folder.path(), "gpuemu-daemon")?.arg("--detached").spawn();
        let mut daemon = Self { folder, process: process.map_err(|error| error.to_string())? };
        daemon.wait()?;
        Ok(daemon)
    }

    /// Kills the process at once, as a crash would.
    pub fn kill(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }

    /// Starts another process over the same folder, and waits until it answers.
    pub fn restart(&mut self) -> Result<(), String> {
        self.start_as(Command::new(program("gpuemu-daemon")?).arg("--detached"))
    }

    /// Starts another process by a command that ends in being the daemon, and waits until it answers.
    pub fn start_as(&mut self, command: &mut Command) -> Result<(), String> {
        self.kill();
        self.process = at_home(command, self.folder.path()).spawn().map_err(|error| error.to_string())?;
        self.wait()
    }

    /// The number of its process.
    pub fn id(&self) -> u32 {
        self.process.id()
    }

    pub fn socket(&self) -> PathBuf {
        self.folder.path().join("home/gpuemu.sock")
    }

    pub fn client(&self) -> Result<Client, String> {
        Client::connect(&self.socket(), PATIENCE).map_err(|error| error.to_string())
    }

    /// A folder of this name with these files; its configuration is `gpuemu.toml`, if that is one of them.
    pub fn project(&self, name: &str, files: &[(&str, &str)]) -> Result<ProjectReference, String> {
        project(&self.folder.path().join(name), files)
    }

    /// The command line, over the same folder as the daemon.
    pub fn command_line(&self) -> Result<Command, String> {
        command(self.folder.path(), "gpuemu")
    }

    pub fn store(&self) -> PathBuf {
        self.folder.path().join("home/db/gpuemu.redb")
    }

    /// What the command line prints in a project, where it ends as it has to.
    pub fn gpuemu(&self, root: &Path, arguments: &[&str], code: i32) -> Result<String, String> {
        let mut command = self.command_line()?;
        command.current_dir(root).args(arguments).stdout(Stdio::piped()).stderr(Stdio::piped());
        let output = command.output().map_err(|error| error.to_string())?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        if output.status.code() == Some(code) {
            return Ok(text);
        }
        let said = String::from_utf8_lossy(&output.stderr);
        Err(format!("gpuemu {} ended with {}, not {code}: {text}{said}", arguments.join(" "), output.status))
    }

    fn wait(&mut self) -> Result<(), String> {
        let deadline = Instant::now() + PATIENCE;
        while Client::connect(&self.socket(), PATIENCE).is_err() {
            if let Ok(Some(status)) = self.process.try_wait() {
                return Err(format!("the daemon ended at once: {status}"));
            }
            if Instant::now() > deadline {
                return Err("the daemon did not start".to_string());
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        Ok(())
    }
}

impl Drop for DaemonProcess {
    fn drop(&mut self) {
        self.kill();
    }
}

/// A program of gpuemu with its home and settings in a folder.
pub fn command(folder: &Path, name: &str) -> Result<Command, String> {
    let mut command = Command::new(program(name)?);
    at_home(&mut command, folder);
    Ok(command)
}

/// A command with gpuemu's home and settings in a folder, and nothing to read or write.
pub fn at_home<'a>(command: &'a mut Command, folder: &Path) -> &'a mut Command {
    command
        .env("GPUEMU_HOME", folder.join("home"))
        .env("XDG_CONFIG_HOME", folder.join("config"))
        .env_remove("GPUEMU_SOCKET")
        .env_remove("GPUEMU_CONFIG")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
}

/// A copy of a program in a folder, for users who cannot enter the one that it was built in.
pub fn copied(folder: &Path, name: &str) -> Result<PathBuf, String> {
    let copy = folder.join(name);
    if !copy.exists() {
        // By another process: a descriptor to write it that a child happened to inherit would keep it from being run.
        let made = Command::new("cp").arg(program(name)?).arg(&copy).status();
        let made = made.and_then(|_| std::fs::set_permissions(&copy, std::fs::Permissions::from_mode(0o755)));
        made.map_err(|error| format!("{}: {error}", copy.display()))?;
    }
    Ok(copy)
}

/// Waits until somebody listens on a socket.
pub fn listens(socket: &Path) -> Result<(), String> {
    let start = Instant::now();
    while UnixStream::connect(socket).is_err() {
        if start.elapsed() > PATIENCE {
            return Err(format!("nobody listens on {}", socket.display()));
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    Ok(())
}

/// The same program as a user without rights, if this one is root; what it then needs has to be open to all.
pub fn unprivileged(command: &mut Command) -> &mut Command {
    if rustix::process::geteuid().is_root() { command.uid(NOBODY).gid(NOBODY) } else { command }
}

/// A folder with these files as a project.
pub fn project(root: &Path, files: &[(&str, &str)]) -> Result<ProjectReference, String> {
    for (file, text) in files {
        let path = root.join(file);
        let made = path.parent().map_or(Ok(()), std::fs::create_dir_all).and_then(|()| std::fs::write(&path, text));
        made.map_err(|error| format!("{}: {error}", path.display()))?;
    }
    std::fs::create_dir_all(root).map_err(|error| error.to_string())?;
    let config = Some(root.join("gpuemu.toml")).filter(|config| config.is_file());
    Ok(ProjectReference { root: root.to_path_buf(), config, digest: None, python: python() })
}
