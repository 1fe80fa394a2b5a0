//! A disk without room, and a home that cannot be written: an error that says what to do, and the old data intact.

use std::collections::BTreeSet;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};

use gpuemu_wire::protocol::{Request, Response};
use gpuemu_wire::{Client, ClientError};

use crate::daemon_process::{DaemonProcess, at_home, copied, listens, program, unprivileged};
use crate::requests::{right_answer, stored_runs};
use crate::trial::{Ended, Extent, Trial, grouped};

pub const TRIAL: Trial = Trial { name: "disk", about: "no room on the disk, and homes that cannot be written", run };

fn run(_extent: &Extent) -> Ended {
    full_disk().and_then(|full| Ok([full, read_only_homes()?].concat())).into()
}

/// Blocks of 512 or 1,024 bytes that a file may have. It stands in for the end of the disk.
const LARGEST_FILE: u32 = 4000;

/// Lets a daemon write until it has no room; what it acknowledged is there once it has some.
fn full_disk() -> Result<Vec<String>, String> {
    let mut daemon = DaemonProcess::start()?;
    let project = daemon.project("project", &[])?;
    let mut before = BTreeSet::new();
    validate(&mut daemon.client()?, &right_answer(&project)?, &mut before, 50).map_err(|error| error.to_string())?;
    daemon.kill();
    let limited = format!("trap '' XFSZ; ulimit -f {LARGEST_FILE}; exec \"$@\"");
    let mut shell = Command::new("sh");
    shell.args(["-c", &limited, "sh"]).arg(program("gpuemu-daemon")?).arg("--detached");
    daemon.start_as(&mut shell)?;
    let mut acknowledged = before;
    let mut client = daemon.client()?;
    let error = match validate(&mut client, &right_answer(&project)?, &mut acknowledged, u64::MAX) {
        Err(error) => error.to_string(),
        Ok(()) => return Err("the disk never was full".to_string()),
    };
    says(&error, &["gpuemu.redb", "make room"])?;
    // Whoever asks further is told as much; nothing is called passed and the daemon stays.
    let again = validate(&mut client, &right_answer(&project)?, &mut BTreeSet::new(), 1);
    says(&again.err().map_or("passed".to_string(), |error| error.to_string()), &["gpuemu.redb"])?;
    client.call(&Request::Ping { protocol_version: None }).map_err(|error| format!("no answer to Ping: {error}"))?;
    daemon.restart()?;
    let kept = stored_runs(&mut daemon.client()?, &project)?;
    match acknowledged.difference(&kept).count() {
        0 => Ok(vec![format!("full disk: {} acknowledged results, 0 lost", grouped(acknowledged.len() as u64))]),
        lost => Err(format!("{lost} of {} results are gone after the disk was full", acknowledged.len())),
    }
}

/// Validates right outputs until one is not acknowledged.
fn validate(client: &mut Client, request: &Request, runs: &mut BTreeSet<u64>, most: u64) -> Result<(), ClientError> {
    for _ in 0..most {
        if let Response::ValidationResult { result } = client.call(request)? {
            runs.extend(result.run);
        }
    }
    Ok(())
}

fn says(message: &str, words: &[&str]) -> Result<(), String> {
    match words.iter().find(|word| !message.contains(**word)) {
        None => Ok(()),
        Some(missing) => Err(format!("'{missing}' is not in the message: {message}")),
    }
}

/// Homes that cannot be written, each with a store in it that has to be as it was.
fn read_only_homes() -> Result<Vec<String>, String> {
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let place = folder.path();
    let open_to_all = |path: &Path| std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o777));
    open_to_all(place).map_err(|error| error.to_string())?;
    let run = |home: &Path| -> Result<Command, String> {
        let mut daemon = Command::new(copied(place, "gpuemu-daemon")?);
        at_home(&mut daemon, place).env("GPUEMU_HOME", home).stderr(Stdio::piped());
        Ok(daemon)
    };
    let home = place.join("home");
    let mut first = unprivileged(run(&home)?.arg("--detached")).spawn().map_err(|error| error.to_string())?;
    listens(&home.join("gpuemu.sock"))?;
    let _ = first.kill();
    let _ = first.wait();
    let store = home.join("db/gpuemu.redb");
    let before = std::fs::read(&store).map_err(|error| error.to_string())?;
    let mut tried = Vec::new();
    let mut refused = |what: &str, mut daemon: Command, words: &[&str]| -> Result<(), String> {
        let output = daemon.output().map_err(|error| error.to_string())?;
        let message = String::from_utf8_lossy(&output.stderr).into_owned();
        if output.status.code() != Some(2) {
            return Err(format!("{what}: the daemon ended with {}: {message}", output.status));
        }
        says(&message, words).map_err(|problem| format!("{what}: {problem}"))?;
        if std::fs::read(&store).ok().as_ref() != Some(&before) {
            return Err(format!("{what}: the store was changed"));
        }
        tried.push(what.to_string());
        Ok(())
    };
    let mode = |path: &Path, mode: u32| std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode));
    mode(&store, 0o400).map_err(|error| error.to_string())?;
    let mut daemon = run(&home)?;
    unprivileged(&mut daemon);
    refused("store without write permission", daemon, &["gpuemu.redb", "writable"])?;
    mode(&store, 0o600).map_err(|error| error.to_string())?;
    if rustix::process::geteuid().is_root() {
        // A home of somebody else's that may be read.
        let theirs = place.join("theirs");
        std::fs::create_dir(&theirs).and_then(|()| mode(&theirs, 0o755)).map_err(|error| error.to_string())?;
        let mut daemon = run(&theirs)?;
        unprivileged(&mut daemon);
        refused("home of another user", daemon, &["theirs", "GPUEMU_HOME"])?;
        // The whole home on a file system that is read-only.
        let mounted = "mount --bind \"$1\" \"$1\" && mount -o remount,ro,bind \"$1\" && shift && exec \"$@\"";
        let inner = run(&home)?;
        let mut shell = Command::new("unshare");
        shell.args(["--mount", "sh", "-c", mounted, "sh"]).arg(&home).arg(inner.get_program());
        shell.envs(inner.get_envs().filter_map(|(name, value)| Some((name, value?))));
        if Command::new("unshare").args(["--mount", "true"]).output().is_ok_and(|output| output.status.success()) {
            refused("read-only file system", shell, &["Read-only file system", "GPUEMU_HOME"])?;
        }
    }
    // And it is a store like any other afterwards.
    let reopened = gpuemu_store::Store::open(&store).map_err(|error| error.to_string())?;
    reopened.counts().map_err(|error| error.to_string())?;
    Ok(vec![format!("refused with a reason and left as it was: {}", tried.join(", "))])
}
