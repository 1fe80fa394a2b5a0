//! The Python package, measured by a script of its own.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use crate::row::Row;

/// The rows of this group.
pub fn rows() -> Vec<Row> {
    measured("GPUEMU_BENCH_PYTHON", "measure.py")
}

/// Campaigns on a Ray cluster of this machine.
pub fn campaign_rows() -> Vec<Row> {
    measured("GPUEMU_BENCH_RAY_PYTHON", "campaign.py")
}

fn measured(python: &str, script: &str) -> Vec<Row> {
    measure(python, script).unwrap_or_else(|reason| {
        eprintln!("the Python package could not be measured: {reason}");
        Vec::new()
    })
}

fn measure(python: &str, script: &str) -> Result<Vec<Row>, String> {
    let known =
        |name: &str| std::env::var_os(name).ok_or(format!("{name} is not set: run this by `cargo xtask bench`"));
    let python = known(python)?;
    // Looked up when the program runs, not when it is compiled: clones may share one target folder.
    let script = PathBuf::from(known("CARGO_MANIFEST_DIR")?).join("../../python/bench").join(script);
    let output = Command::new(python)
        .arg(script)
        .stderr(Stdio::inherit())
        .output()
        .map_err(|error| format!("Python cannot be started: {error}"))?;
    if !output.status.success() {
        return Err(format!("the script ended with {}", output.status));
    }
    serde_json::from_slice(&output.stdout).map_err(|error| format!("the script printed no rows: {error}"))
}
