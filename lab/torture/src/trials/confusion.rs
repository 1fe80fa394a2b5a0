//! Two projects, two daemons, stale sockets, other versions, a clock that goes back, a daemon that dies in mid-job,
//! requests that are sent again: the right one answers, or an error says what to do.

use std::collections::BTreeSet;
use std::fs;
use std::io::{Read, Write};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use gpuemu_model::error_code::ErrorCode;
use gpuemu_store::Store;
use gpuemu_wire::protocol::{ListResults, Request, Response};
use gpuemu_wire::{Client, sp};

use crate::daemon_process::{DaemonProcess, PATIENCE, at_home, program, project, python};
use crate::records::record;
use crate::requests::{right_answer, stored};
use crate::trial::{Ended, Extent, Trial};

pub const TRIAL: Trial = Trial {
    name: "confusion",
    about: "two projects and daemons, stale sockets, other versions, clocks, deaths in mid-job, resent requests",
    run,
};

/// One confusion, and what it came to.
type Part = fn(&Extent) -> Result<String, String>;

fn run(extent: &Extent) -> Ended {
    if python().is_none() {
        return Ended::Impossible("GPUEMU_TEST_PYTHON names no Python".to_string());
    }
    let parts: [Part; 7] = [two_projects, two_daemons, stale_sockets, versions, clock, death_in_mid_job, resent];
    parts.into_iter().map(|part| part(extent)).collect::<Result<Vec<String>, String>>().into()
}

const CONFIG: &str = "[project]\nname = \"p\"\nframework = \"numpy\"\n\n[[ops]]\nname = \"relu\"\nmodule = \"relu\"\n";
const RIGHT: &str = "import numpy as np\n\n\ndef relu(input):\n    return np.maximum(input, 0)\n";
const WRONG: &str = "import numpy as np\n\n\ndef relu(input):\n    return np.maximum(input, 1)\n";

/// The command line in a project, over the home in a folder.
fn gpuemu(folder: &Path, root: &Path, arguments: &[&str]) -> Result<Output, String> {
    let mut command = Command::new(program("gpuemu")?);
    at_home(&mut command, folder).current_dir(root).args(arguments).stdout(Stdio::piped()).stderr(Stdio::piped());
    if let Some(python) = python() {
        command.env("GPUEMU_PYTHON", python);
    }
    command.output().map_err(|error| error.to_string())
}

fn words(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

fn expect(what: &str, output: &Output, code: i32, needed: &[&str]) -> Result<(), String> {
    let text = words(output);
    if output.status.code() != Some(code) {
        return Err(format!("{what}: {} where {code} was expected: {text}", output.status));
    }
    let missing = needed.iter().find(|word| !text.contains(**word));
    missing.map_or(Ok(()), |missing| Err(format!("{what}: '{missing}' is not said: {text}")))
}

/// Ops of the same name in two projects of one daemon, tried at the same time.
fn two_projects(_extent: &Extent) -> Result<String, String> {
    let daemon = DaemonProcess::start()?;
    let folder = daemon.folder.path();
    let right = project(&folder.join("right"), &[("gpuemu.toml", CONFIG), ("relu.py", RIGHT)])?.root;
    let wrong = project(&folder.join("wrong"), &[("gpuemu.toml", CONFIG), ("relu.py", WRONG)])?.root;
    let runs: Vec<(Result<Output, String>, Result<Output, String>)> = std::thread::scope(|scope| {
        let run = |root| move || gpuemu(folder, root, &["test", "--seed", "3"]);
        let pairs: Vec<_> = (0..3).map(|_| (scope.spawn(run(&right)), scope.spawn(run(&wrong)))).collect();
        let join = |thread: std::thread::ScopedJoinHandle<'_, Result<Output, String>>| {
            thread.join().unwrap_or_else(|_| Err("a thread panicked".to_string()))
        };
        pairs.into_iter().map(|(one, other)| (join(one), join(other))).collect()
    });
    for (one, other) in &runs {
        expect("the right project", one.as_ref().map_err(Clone::clone)?, 0, &[])?;
        expect("the wrong project", other.as_ref().map_err(Clone::clone)?, 1, &["relu"])?;
    }
    expect("failures of the right project", &gpuemu(folder, &right, &["failures"])?, 0, &["no failure is stored"])?;
    Ok(format!("{} runs of two projects at once keep apart", 2 * runs.len()))
}

/// A second daemon over the same home is refused by name, and one over another home has nothing of the first.
fn two_daemons(_extent: &Extent) -> Result<String, String> {
    let daemon = DaemonProcess::start()?;
    let mut second = Command::new(program("gpuemu-daemon")?);
    let output = at_home(&mut second, daemon.folder.path()).stderr(Stdio::piped()).output();
    let holder = format!("is in use by the daemon (process {})", daemon.id());
    expect("a second daemon", &output.map_err(|error| error.to_string())?, 2, &[&holder])?;
    let project = daemon.project("project", &[])?;
    daemon.client()?.call(&right_answer(&project)?).map_err(|error| error.to_string())?;
    let other = DaemonProcess::start()?;
    match (stored(&mut daemon.client()?, &project)?.len(), stored(&mut other.client()?, &project)?.len()) {
        (1, 0) => Ok("a second daemon over one home is refused by name".to_string()),
        counts => Err(format!("two daemons have {counts:?} results of one")),
    }
}

/// A socket that nobody listens on any more: the next command starts a daemon, also when many do at once.
fn stale_sockets(_extent: &Extent) -> Result<String, String> {
    let mut daemon = DaemonProcess::start()?;
    let root = daemon.project("project", &[("gpuemu.toml", CONFIG), ("relu.py", RIGHT)])?.root;
    daemon.kill();
    if !daemon.socket().exists() {
        return Err("a killed daemon left no socket to be stale".to_string());
    }
    let folder = daemon.folder.path();
    let outputs: Vec<Result<Output, String>> = std::thread::scope(|scope| {
        let status = || gpuemu(folder, &root, &["status"]);
        let threads: Vec<_> = (0..8).map(|_| scope.spawn(status)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap_or_else(|_| Err("panicked".to_string()))).collect()
    });
    let count = outputs.len();
    for output in outputs {
        expect("a command over a stale socket", &output?, 0, &[])?;
    }
    expect("stopping", &gpuemu(folder, &root, &["daemon", "stop"])?, 0, &[])?;
    Ok(format!("{count} commands at once over a stale socket start one daemon"))
}

/// A daemon and a client of other versions of the protocol.
fn versions(_extent: &Extent) -> Result<String, String> {
    let daemon = DaemonProcess::start()?;
    match daemon.client()?.call(&Request::Ping { protocol_version: Some(99) }) {
        Err(gpuemu_wire::ClientError::Refused { code: ErrorCode::VersionMismatch, hint: Some(hint), .. })
            if hint.contains("gpuemu daemon stop") => {}
        other => return Err(format!("a client of another version: {other:?}")),
    }
    // A daemon of another version, as far as a client can tell.
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let home = folder.path().join("home");
    fs::create_dir_all(&home).map_err(|error| error.to_string())?;
    let listener = UnixListener::bind(home.join("gpuemu.sock")).map_err(|error| error.to_string())?;
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let _ = old_daemon(&mut stream);
        }
    });
    let root = project(&folder.path().join("project"), &[("gpuemu.toml", CONFIG), ("relu.py", RIGHT)])?.root;
    let output = gpuemu(folder.path(), &root, &["test"])?;
    expect("a daemon of another version", &output, 2, &["protocol 99", "daemon stop"])?;
    Ok("other versions are named, with what to do".to_string())
}

fn old_daemon(stream: &mut std::os::unix::net::UnixStream) -> std::io::Result<()> {
    stream.write_all(&sp::handshake(sp::REPLY))?;
    stream.read_exact(&mut [0; sp::HANDSHAKE_BYTES])?;
    loop {
        let mut prefix = [0; sp::PREFIX_BYTES];
        stream.read_exact(&mut prefix)?;
        let mut body = vec![0; sp::body_length(prefix).unwrap_or(0) as usize];
        stream.read_exact(&mut body)?;
        let pong = br#"{"type":"Pong","version":"0.0.1","protocol_version":99,"uptime_seconds":1}"#;
        stream.write_all(&sp::prefix(4 + pong.len()))?;
        stream.write_all(&body[..4])?;
        stream.write_all(pong)?;
    }
}

/// A clock that was a year ahead when results were stored: new runs are still the newest.
fn clock(_extent: &Extent) -> Result<String, String> {
    let mut daemon = DaemonProcess::start()?;
    let project = daemon.project("project", &[])?;
    daemon.kill();
    let store = daemon.folder.path().join("home/db/gpuemu.redb");
    let root = fs::canonicalize(&project.root).map_err(|error| error.to_string())?;
    let year = Duration::from_secs(365 * 86_400);
    let ahead = (SystemTime::now() + year).duration_since(UNIX_EPOCH).map_err(|error| error.to_string())?;
    let mut late = record(&root.to_string_lossy(), ahead.as_micros() as u64, "relu", 0);
    late.result.time = ahead.as_millis() as u64;
    let opened = Store::open(&store).map_err(|error| error.to_string())?;
    opened.append(std::slice::from_ref(&late), &[]).map_err(|error| error.to_string())?;
    drop(opened);
    daemon.restart()?;
    let mut client = daemon.client()?;
    let mut runs = vec![late.run];
    for _ in 0..5 {
        match client.call(&right_answer(&project)?).map_err(|error| error.to_string())? {
            Response::ValidationResult { result } => runs.extend(result.run),
            other => return Err(format!("{other:?}")),
        }
    }
    let listed: Vec<u64> = stored(&mut client, &project)?.iter().filter_map(|result| result.run).collect();
    if !runs.is_sorted_by(|one, next| one < next) || listed != runs.iter().rev().copied().collect::<Vec<_>>() {
        return Err(format!("runs {runs:?} are listed as {listed:?}"));
    }
    let recent = ListResults { project, op_name: None, limit: None, since_hours: Some(1.0) };
    match client.call(&Request::ListResults(recent)).map_err(|error| error.to_string())? {
        Response::Results { results } if results.len() == runs.len() => {
            Ok("runs are in order after a clock that was a year ahead".to_string())
        }
        other => Err(format!("of the last hour: {other:?}")),
    }
}

/// The daemon is killed in the middle of jobs: the command says so, nothing is called passed, and the next run works.
fn death_in_mid_job(extent: &Extent) -> Result<String, String> {
    let mut daemon = DaemonProcess::start()?;
    let root = daemon.project("project", &[("gpuemu.toml", CONFIG), ("relu.py", RIGHT)])?.root;
    let deaths = extent.count(20, 3);
    for death in 0..deaths {
        let folder = daemon.folder.path().to_path_buf();
        let output = std::thread::scope(|scope| {
            let command =
                scope.spawn(|| gpuemu(&folder, &root, &["fuzz", "--op", "relu", "--iterations", "100000000"]));
            let start = Instant::now();
            while running_jobs(&daemon) == 0 && start.elapsed() < PATIENCE {
                std::thread::sleep(Duration::from_millis(5));
            }
            std::thread::sleep(Duration::from_millis(37 * (death % 8)));
            daemon.kill();
            command.join().unwrap_or_else(|_| Err("panicked".to_string()))
        })?;
        expect("a command whose daemon died", &output, 2, &["the connection to the daemon broke"])?;
        if words(&output).contains("PASS") {
            return Err(format!("a command whose daemon died says: {}", words(&output)));
        }
        daemon.restart()?;
    }
    let output = gpuemu(daemon.folder.path(), &root, &["test", "--seed", "3"])?;
    expect("the run after it", &output, 0, &[])?;
    Ok(format!("{deaths} deaths in mid-job are errors, and the next run works"))
}

fn running_jobs(daemon: &DaemonProcess) -> usize {
    let status = Client::connect(&daemon.socket(), PATIENCE).and_then(|mut client| client.call(&Request::Status));
    match status {
        Ok(Response::Status { status }) => status.running_jobs,
        _ => 0,
    }
}

/// NNG's own client, which sends a request again when no answer came in time: in the full form after its usual minute.
fn resent(extent: &Extent) -> Result<String, String> {
    let Some(python) = python() else { return Err("no Python".to_string()) };
    let daemon = DaemonProcess::start()?;
    let (seconds, resend) = if extent.short { (1, 100) } else { (65, 60_000) };
    let config = format!("{CONFIG}reference = \"slow.py\"\nexecution_mode = \"script_based\"\ntimeout = 100.0\n");
    let slow = format!(
        "import json\nimport sys\nimport time\n\nrequest = json.load(sys.stdin)\nwith open(\"log\", \"a\") as log:\n    \
         log.write(\"x\")\ntime.sleep({seconds})\njson.dump({{\"outputs\": {{\"output\": request[\"inputs\"][\"input\"]}}}}, \
         sys.stdout)\n"
    );
    let project = daemon.project("project", &[("gpuemu.toml", &config), ("relu.py", RIGHT), ("slow.py", &slow)])?;
    let request = serde_json::to_string(&right_answer(&project)?).map_err(|error| error.to_string())?;
    let program = "import sys, pynng\nwith pynng.Req0(dial='ipc://' + sys.argv[1], recv_timeout=90000, \
                   resend_time=int(sys.argv[2])) as socket:\n    socket.send(sys.argv[3].encode())\n    \
                   print(socket.recv().decode())\n";
    let mut command = Command::new(python);
    command.args(["-c", program]).arg(daemon.socket()).arg(resend.to_string()).arg(request);
    let output = command.output().map_err(|error| error.to_string())?;
    let answer = String::from_utf8_lossy(&output.stdout).into_owned();
    if !answer.contains("\"outcome\":\"passed\"") {
        return Err(format!("the request that was sent again: {answer} {}", words(&output)));
    }
    let runs = fs::read_to_string(project.root.join("log")).map_err(|error| error.to_string())?.len();
    let kept: BTreeSet<u64> = stored(&mut daemon.client()?, &project)?.iter().filter_map(|result| result.run).collect();
    match (runs, kept.len()) {
        (1, 1) => Ok(format!("a request of {seconds} s that NNG sent again every {resend} ms ran once")),
        (runs, kept) => Err(format!("a request that was sent again ran {runs} times and was kept {kept} times")),
    }
}
