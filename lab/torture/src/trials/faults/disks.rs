//! Faults of the system itself, with the gpuemu that users have: full disks, folders that are not there, a store that is
//! removed or cut under the daemon's feet.

use std::fs::{self, File, OpenOptions};
use std::path::Path;
use std::process::{Command, Stdio};

use super::trial::Ground;
use crate::daemon_process::command;

const FORMATS: [&str; 6] = ["text", "json", "junit", "sarif", "markdown", "html"];

/// Strikes with all of them; what was counted.
pub fn strike(ground: &Ground) -> Result<String, String> {
    let mut tried = 0;
    for format in FORMATS {
        for place in ["stdout", FULL, "no/folder/report", "gpuemu.toml/report"] {
            unwritable(ground, format, place)?;
            tried += 1;
        }
    }
    for place in [FULL, "no/folder/report"] {
        unsigned(ground, place)?;
        tried += 1;
    }
    for harm in [remove, cut_in_half, empty_out] {
        under_the_daemon(ground, harm)?;
        tried += 1;
    }
    Ok(format!("{tried} faults of disks, 0 passes"))
}

/// A device without room, in the project: the system's own must not be put at risk.
const FULL: &str = "full";

/// Makes the device; where that is not allowed, a link to the system's own, which nobody without rights can harm.
fn make_full(project: &Path) -> Result<(), String> {
    let path = project.join(FULL);
    let made = Command::new("mknod").arg(&path).args(["c", "1", "7"]).stderr(Stdio::null()).status();
    let works = made.is_ok_and(|made| made.success()) && OpenOptions::new().write(true).open(&path).is_ok();
    if !works && !rustix::process::geteuid().is_root() {
        let _ = fs::remove_file(&path);
        std::os::unix::fs::symlink("/dev/full", &path).map_err(|error| error.to_string())?;
    }
    Ok(())
}

const RUN: [&str; 5] = ["ci", "--iterations", "4", "--seed", "7"];

/// A report that cannot be written.
fn unwritable(ground: &Ground, format: &str, place: &str) -> Result<(), String> {
    let folder = ground.copy_of("kernel")?;
    make_full(&folder.path().join("kernel"))?;
    let mut gpuemu = ground.gpuemu(folder.path(), "gpuemu", "kernel")?;
    gpuemu.args(RUN).args(["--no-daemon", "--format", format]).stderr(Stdio::piped());
    match place {
        "stdout" => {
            let full = OpenOptions::new().write(true).open("/dev/full").map_err(|error| error.to_string())?;
            gpuemu.stdout(full)
        }
        place => gpuemu.args(["--output", place]),
    };
    let output = gpuemu.output().map_err(|error| error.to_string())?;
    let words = String::from_utf8_lossy(&output.stderr);
    if output.status.code() != Some(2) || !words.contains("error: ") {
        return Err(format!("a report as {format} to {place} ends with {}: {words}", output.status));
    }
    Ok(())
}

/// A signed report that cannot be written: there is no signature either.
fn unsigned(ground: &Ground, place: &str) -> Result<(), String> {
    let folder = ground.copy_of("kernel")?;
    make_full(&folder.path().join("kernel"))?;
    for (arguments, status) in [(&RUN[..], 0), (&["report", "--signed", "--output", place][..], 2)] {
        let mut gpuemu = ground.gpuemu(folder.path(), "gpuemu", "kernel")?;
        let output = gpuemu.args(arguments).arg("--no-daemon").stderr(Stdio::piped()).output();
        let output = output.map_err(|error| error.to_string())?;
        if output.status.code() != Some(status) {
            let words = String::from_utf8_lossy(&output.stderr);
            return Err(format!("`gpuemu {}` ends with {}: {words}", arguments.join(" "), output.status));
        }
    }
    Ok(())
}

fn remove(store: &File, path: &Path) -> std::io::Result<()> {
    let _ = store;
    fs::remove_file(path)
}

fn cut_in_half(store: &File, _: &Path) -> std::io::Result<()> {
    store.set_len(store.metadata()?.len() / 2)
}

fn empty_out(store: &File, _: &Path) -> std::io::Result<()> {
    store.set_len(0)
}

type Harm = fn(&File, &Path) -> std::io::Result<()>;

/// A store that is harmed while the daemon has it: a run that says passed is one whose results can be read afterwards.
fn under_the_daemon(ground: &Ground, harm: Harm) -> Result<(), String> {
    let failed = |error: std::io::Error| error.to_string();
    let folder = ground.copy_of("kernel")?;
    let gpuemu = |arguments: &[&str]| {
        let mut gpuemu = ground.gpuemu(folder.path(), "gpuemu", "kernel")?;
        gpuemu.args(arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).output().map_err(failed)
    };
    if gpuemu(&RUN)?.status.code() != Some(0) {
        return Err("a run of a right op does not pass".to_string());
    }
    let path = folder.path().join("home/db/gpuemu.redb");
    let store = OpenOptions::new().write(true).open(&path).map_err(failed)?;
    harm(&store, &path).map_err(failed)?;
    let harmed = gpuemu(&RUN)?;
    let answers = gpuemu(&["daemon", "status"])?.status.success();
    let _ = command(folder.path(), "gpuemu")?.args(["daemon", "stop"]).status();
    if !answers {
        return Err("the daemon does not answer after its store was harmed".to_string());
    }
    if harmed.status.success() && !gpuemu(&["report", "--no-daemon"])?.status.success() {
        return Err("a run passed whose results are lost".to_string());
    }
    Ok(())
}
