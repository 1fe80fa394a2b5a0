//! A script that is run to its end.

use std::io::{self, Read, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::{ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use gpuemu_process::fault;
use gpuemu_process::{GRACE, Group};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};

use super::tail::Tail;

/// When something has to be done; never, where that is further away than the clock reaches.
#[derive(Debug, Clone, Copy)]
pub(super) struct Deadline(Option<Instant>);

impl Deadline {
    /// A time from now.
    pub(super) fn after(time: Duration) -> Self {
        Self(Instant::now().checked_add(time))
    }

    /// What is left until then.
    pub(super) fn left(self) -> Duration {
        self.0.map_or(Duration::MAX, |instant| instant.saturating_duration_since(Instant::now()))
    }
}

/// How a process that was run to its end came to it.
#[derive(Debug)]
pub(super) enum Ending {
    Exited(io::Result<ExitStatus>),
    /// It was ended for the time it took.
    TimedOut,
    /// It was ended for what it printed.
    TooMuchOutput,
    /// What it printed cannot be read.
    Unreadable(io::Error),
}

/// What a process left behind.
#[derive(Debug)]
pub(super) struct Run {
    pub ending: Ending,
    pub stdout: Vec<u8>,
    /// The end of its stderr.
    pub stderr: Tail,
}

enum Event {
    Exited,
    OutputClosed,
    /// With the pipe: a process that finds nobody to read would say so before it is ended.
    TooMuchOutput(ChildStdout),
    Unreadable(io::Error),
}

/// Runs a process to its end: its own, or the one it is given. Nothing of its group is left.
pub(super) fn run(
    command: &mut Command,
    input: Vec<u8>,
    timeout: Duration,
    output_bytes: u64,
    started: impl FnOnce(Pid),
) -> io::Result<Run> {
    let mut until = Deadline::after(timeout);
    let command = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut group = fault!("process.spawn", io::Error::other("injected"), Group::spawn(command))?;
    started(group.id());
    let missing = || io::Error::other("a pipe of the process is missing");
    let pipes = group.child();
    let stdin = pipes.stdin.take().ok_or_else(missing)?;
    let stdout = pipes.stdout.take().ok_or_else(missing)?;
    let stderr = Tail::of(pipes.stderr.take().ok_or_else(missing)?)?;
    let (events, happened) = channel();
    let output = Arc::new(Mutex::new(Vec::new()));
    feed(stdin, input)?;
    collect(stdout, output.clone(), output_bytes, events.clone())?;
    let watcher = watch(group.id(), events)?;

    let (mut exited, mut closed, mut too_much, mut unreadable) = (false, false, None, None);
    while !(exited && closed || too_much.is_some() || unreadable.is_some()) {
        match happened.recv_timeout(until.left()) {
            Ok(Event::Exited) => {
                exited = true;
                until = Deadline::after(GRACE);
            }
            Ok(Event::OutputClosed) => closed = true,
            Ok(Event::TooMuchOutput(stdout)) => too_much = Some(stdout),
            Ok(Event::Unreadable(error)) => unreadable = Some(error),
            Err(_) => break,
        }
    }
    let _ = kill_process_group(group.id(), Signal::KILL);
    // Before the process is waited for: until then the watcher's number is that of this process.
    let _ = watcher.join();
    let status = group.end();
    let ending = match (unreadable, too_much.is_some(), exited) {
        (Some(error), ..) => Ending::Unreadable(error),
        (None, true, _) => Ending::TooMuchOutput,
        (None, false, false) => Ending::TimedOut,
        (None, false, true) => Ending::Exited(status),
    };
    let stdout = std::mem::take(&mut *output.lock().unwrap_or_else(PoisonError::into_inner));
    Ok(Run { ending, stdout, stderr })
}

/// Writes the input from a thread of its own: the process may print before it reads, or never read.
fn feed(mut stdin: ChildStdin, input: Vec<u8>) -> io::Result<()> {
    thread::Builder::new().name("gpuemu-stdin".to_string()).spawn(move || {
        fault!("process.write");
        // A process that does not want its input may still give an answer.
        let _ = stdin.write_all(&input);
    })?;
    Ok(())
}

fn collect(stdout: ChildStdout, output: Arc<Mutex<Vec<u8>>>, limit: u64, events: Sender<Event>) -> io::Result<()> {
    thread::Builder::new().name("gpuemu-stdout".to_string()).spawn(move || {
        let read = catch_unwind(AssertUnwindSafe(|| read_all(stdout, &output, limit)));
        let event = read.unwrap_or_else(|_| {
            Event::Unreadable(io::Error::other("internal error: the thread that reads it panicked"))
        });
        // Nobody listens once the process is given up.
        let _ = events.send(event);
    })?;
    Ok(())
}

/// Reads to the end; what else may end it. Without its end, what came may be whole by chance: it is no answer.
fn read_all(mut stdout: ChildStdout, output: &Mutex<Vec<u8>>, limit: u64) -> Event {
    let mut chunk = vec![0; 64 << 10];
    loop {
        match fault!("process.read", io::Error::other("injected"), stdout.read(&mut chunk)) {
            Ok(0) => return Event::OutputClosed,
            Ok(count) => {
                let mut output = output.lock().unwrap_or_else(PoisonError::into_inner);
                if (output.len() + count) as u64 > limit {
                    return Event::TooMuchOutput(stdout);
                }
                output.extend_from_slice(&chunk[..count]);
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Event::Unreadable(error),
        }
    }
}

fn watch(process: Pid, events: Sender<Event>) -> io::Result<JoinHandle<()>> {
    thread::Builder::new().name("gpuemu-watch".to_string()).spawn(move || {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
        while let Err(rustix::io::Errno::INTR) = waitid(WaitId::Pid(process), options) {}
        let _ = events.send(Event::Exited);
    })
}
