//! How long the command line takes to do nothing.

use std::path::Path;
use std::process::{Command, Stdio};

use crate::daemon_process::program;
use crate::row::Row;
use crate::timing::median_seconds;

/// The rows of this group.
pub fn rows() -> Vec<Row> {
    let Some(gpuemu) = program("gpuemu") else { return Vec::new() };
    let run = |program: &Path, arguments: &[&str]| {
        median_seconds(200, || {
            let _ = Command::new(program).args(arguments).stdout(Stdio::null()).status();
        })
    };
    let ours = run(&gpuemu, &["--version"]);
    let bare = run(Path::new("/bin/true"), &[]);
    vec![Row::time("gpuemu --version", ours, Some(bare), "/bin/true", "a process started and ended")]
}
