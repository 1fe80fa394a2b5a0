//! A daemon that is to fail at one place, and the client that asks it.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use gpuemu_wire::Client;

use super::points::Point;
use super::trial::PROGRAM;
use crate::daemon_process::{PATIENCE, command};

/// A daemon with its home in a folder. It is killed when it is dropped.
pub struct FaultyDaemon {
    process: Child,
    socket: PathBuf,
    log: PathBuf,
    words: String,
}

impl FaultyDaemon {
    /// Starts one that fails the `hit`th time that it comes by a place.
    pub fn start(folder: &Path, point: &Point, hit: usize, panics: bool) -> Result<Self, String> {
        let failed = |error: std::io::Error| error.to_string();
        let log = folder.join("errors");
        let mut command = command(folder, PROGRAM)?;
        command.args(["daemon", "run"]).env("FAILPOINTS", point.armed(hit, panics)).stdin(Stdio::null());
        let process = command.stderr(File::create(&log).map_err(failed)?).spawn().map_err(failed)?;
        let words = point.struck(panics);
        Ok(Self { process, socket: folder.join("home/gpuemu.sock"), log, words })
    }

    pub fn connect(&self) -> Result<Client, String> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            match Client::connect(&self.socket, PATIENCE) {
                Ok(client) => return Ok(client),
                Err(error) if Instant::now() > deadline => return Err(error.to_string()),
                Err(_) => std::thread::sleep(Duration::from_millis(2)),
            }
        }
    }

    /// Whether it has failed.
    pub fn was_struck(&self) -> Result<bool, String> {
        let words = std::fs::read_to_string(&self.log).map_err(|error| error.to_string())?;
        Ok(words.contains(&self.words))
    }
}

impl Drop for FaultyDaemon {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
