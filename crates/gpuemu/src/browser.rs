//! Opens a file in the user's browser.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::expected_error::ExpectedError;

/// What the system opens files with.
const SYSTEM: &str = if cfg!(target_os = "macos") {
    "open"
} else if cfg!(windows) {
    "explorer"
} else {
    "xdg-open"
};

/// How long a program that cannot open a file may take to say so.
const PATIENCE: Duration = Duration::from_secs(3);

/// Opens a file with the programs of `BROWSER`, or with what the system opens files with.
pub fn open(file: &Path) -> Result<(), ExpectedError> {
    let file = std::path::absolute(file)?;
    let named = std::env::var("BROWSER").unwrap_or_default();
    let candidates = named.split(':').filter(|program| !program.is_empty()).chain([SYSTEM]);
    let mut tried = Vec::new();
    for program in candidates {
        match start(program, &file) {
            Ok(()) => return Ok(()),
            Err(why) => tried.push(format!("{program} {why}")),
        }
    }
    let message = format!("no browser could be started: {}", tried.join("; "));
    Err(ExpectedError::new(message, format!("open {} yourself, or name a browser in BROWSER", file.display())))
}

/// Starts a program; one that ends with an error soon did not open the file.
fn start(program: &str, file: &Path) -> Result<(), String> {
    let mut command = Command::new(program);
    command.arg(file).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = command.spawn().map_err(|error| format!("cannot be started ({error})"))?;
    let deadline = Instant::now() + PATIENCE;
    while Instant::now() < deadline {
        match child.try_wait().map_err(|error| error.to_string())? {
            Some(status) if status.success() => return Ok(()),
            Some(status) => return Err(format!("ended with {status}")),
            None => std::thread::sleep(Duration::from_millis(20)),
        }
    }
    Ok(())
}
