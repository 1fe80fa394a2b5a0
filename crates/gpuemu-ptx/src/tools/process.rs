//! A tool that is run to its end, with a limit to its time and to what it prints.

use std::io::{self, Read};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use gpuemu_process::{GRACE, Group, describe, has_exited};
use tempfile::TempDir;
use thiserror::Error;

/// How often a process that has closed its pipes, or keeps them open, is looked at.
const POLL: Duration = Duration::from_millis(5);
/// How often a program is started again that somebody is still writing.
const STARTS: u32 = 10;

/// What a tool may take.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    pub time: Duration,
    pub output_bytes: usize,
}

/// What a tool left behind.
#[derive(Debug)]
pub(crate) struct Finished {
    pub success: bool,
    /// How it ended, in words.
    pub ending: String,
    pub stdout: String,
    pub stderr: String,
}

/// Why a tool did not come to its own end.
#[derive(Debug, Error)]
pub(crate) enum ProcessError {
    #[error("cannot be started: {0}")]
    Start(#[from] io::Error),
    #[error("did not finish within {} s and was ended", .0.as_secs())]
    TimedOut(Duration),
    #[error("printed more than {0} bytes and was ended")]
    TooMuchOutput(usize),
}

/// A folder that nobody else can read, removed once it is dropped.
pub(crate) fn private_folder() -> io::Result<TempDir> {
    tempfile::Builder::new().prefix("gpuemu-").tempdir()
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn start(command: &mut Command) -> io::Result<Group> {
    let mut left = STARTS;
    loop {
        match Group::spawn(command) {
            Err(error) if error.kind() == io::ErrorKind::ExecutableFileBusy && left > 1 => {
                left -= 1;
                thread::sleep(2 * POLL);
            }
            other => return other,
        }
    }
}

enum Event {
    Closed,
    TooMuch,
}

/// Runs a tool in a folder, which is also where it keeps what it needs only for a while.
pub(crate) fn run(command: &mut Command, scratch: &Path, limits: Limits) -> Result<Finished, ProcessError> {
    command.env("TMPDIR", scratch).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut until = Instant::now() + limits.time;
    let mut group = start(command)?;
    let (events, happened) = channel();
    let stdout = collect(group.child().stdout.take(), limits.output_bytes, events.clone())?;
    let stderr = collect(group.child().stderr.take(), limits.output_bytes, events)?;

    let (mut open, mut ended) = (2, false);
    while open > 0 || !ended {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            break;
        }
        match happened.recv_timeout(left.min(POLL)) {
            Ok(Event::Closed) => open -= 1,
            Ok(Event::TooMuch) => return Err(ProcessError::TooMuchOutput(limits.output_bytes)),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => {
                open = 0;
                thread::sleep(POLL.min(left).min(Duration::from_millis(1)));
            }
        }
        if !ended && has_exited(group.id()) {
            ended = true;
            until = Instant::now() + GRACE;
        }
    }
    if !ended {
        return Err(ProcessError::TimedOut(limits.time));
    }
    let status = group.end()?;
    let text = |bytes: &Mutex<Vec<u8>>| String::from_utf8_lossy(&lock(bytes)).into_owned();
    Ok(Finished {
        success: status.success(),
        ending: describe(Ok(status), None),
        stdout: text(&stdout),
        stderr: text(&stderr),
    })
}

/// Reads a stream from a thread of its own: a process that fills one pipe while the other is read would wait for ever.
fn collect(
    stream: Option<impl Read + Send + 'static>,
    most: usize,
    events: Sender<Event>,
) -> io::Result<Arc<Mutex<Vec<u8>>>> {
    let bytes = Arc::new(Mutex::new(Vec::new()));
    let shared = bytes.clone();
    let mut stream = stream.ok_or_else(|| io::Error::other("a pipe of the process is missing"))?;
    thread::Builder::new().name("gpuemu-tool".to_string()).spawn(move || {
        let mut chunk = vec![0; 64 << 10];
        let event = loop {
            match stream.read(&mut chunk) {
                Ok(0) => break Event::Closed,
                Ok(count) => {
                    let mut bytes = lock(&shared);
                    if bytes.len() + count > most {
                        break Event::TooMuch;
                    }
                    bytes.extend(chunk.iter().take(count));
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => break Event::Closed,
            }
        };
        // Nobody listens once the process is given up.
        let _ = events.send(event);
    })?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str, time: Duration, output_bytes: usize) -> Result<Finished, ProcessError> {
        let folder = private_folder().unwrap();
        let mut command = Command::new("/bin/sh");
        command.args(["-c", script]).current_dir(folder.path());
        run(&mut command, folder.path(), Limits { time, output_bytes })
    }

    const LONG: Duration = Duration::from_secs(60);

    #[test]
    fn both_streams_are_read_at_once() {
        let script = "i=0; while [ $i -lt 3000 ]; do echo aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa >&2; \
                      i=$((i+1)); done; echo done; exit 3";
        let finished = shell(script, LONG, 1 << 20).unwrap();
        assert_eq!((finished.stdout.as_str(), finished.stderr.len()), ("done\n", 3000 * 51));
        assert_eq!((finished.success, finished.ending.as_str()), (false, "exited with status 3"));
    }

    #[test]
    fn a_tool_that_hangs_is_ended_with_its_children() {
        let started = Instant::now();
        let error = shell("sleep 1000 & echo $!; sleep 1000", Duration::from_millis(300), 1 << 20).unwrap_err();
        assert!(matches!(error, ProcessError::TimedOut(_)), "{error}");
        assert!(started.elapsed() < LONG);
    }

    #[test]
    fn a_child_that_keeps_the_pipes_open_does_not_keep_the_caller() {
        let started = Instant::now();
        let finished = shell("sleep 1000 & echo done", LONG, 1 << 20).unwrap();
        assert_eq!(finished.stdout, "done\n");
        assert!(started.elapsed() < LONG / 2);
    }

    #[test]
    fn a_tool_that_closes_its_pipes_is_still_waited_for() {
        let finished = shell("exec >&- 2>&-; sleep 0.2; exit 7", LONG, 1 << 20).unwrap();
        assert_eq!(finished.ending, "exited with status 7");
    }

    #[test]
    fn endless_output_is_cut() {
        let error = shell("while :; do echo endless; done", LONG, 100_000).unwrap_err();
        assert!(matches!(error, ProcessError::TooMuchOutput(100_000)), "{error}");
    }

    #[test]
    fn a_program_that_is_not_there_says_so() {
        let folder = private_folder().unwrap();
        let limits = Limits { time: LONG, output_bytes: 1 };
        let error = run(&mut Command::new(folder.path().join("absent")), folder.path(), limits).unwrap_err();
        assert!(error.to_string().starts_with("cannot be started: "), "{error}");
    }
}
