//! A process and everything it starts: one group, ended as a whole.

use std::collections::BTreeSet;
use std::io::{self, Read, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};

use super::tail::Tail;

/// How long the pipes of a process that has exited are waited for: a child of it may keep them open for ever.
pub(super) const GRACE: Duration = Duration::from_millis(200);

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

/// The groups that run, by number.
static LIVE: Mutex<BTreeSet<i32>> = Mutex::new(BTreeSet::new());

fn live() -> MutexGuard<'static, BTreeSet<i32>> {
    LIVE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Set once everything is being ended.
static ENDING: AtomicBool = AtomicBool::new(false);

/// Whether everything is being ended: what a program did from then on says nothing about it.
pub fn is_ending() -> bool {
    ENDING.load(Ordering::Relaxed)
}

/// Kills every group that runs, for a process that is about to end: a script that hangs would outlive it.
pub fn end_all() {
    ENDING.store(true, Ordering::Relaxed);
    for group in live().iter().filter_map(|number| Pid::from_raw(*number)) {
        // One that has just ended needs no killing.
        let _ = kill_process_group(group, Signal::KILL);
    }
}

/// A process that leads a group of its own. Dropped, the group is killed.
#[derive(Debug)]
pub(super) struct Group {
    child: Child,
    status: Option<ExitStatus>,
}

impl Group {
    /// Starts a process.
    pub(super) fn spawn(command: &mut Command) -> io::Result<Self> {
        let group = Self { child: command.process_group(0).spawn()?, status: None };
        live().insert(group.id().as_raw_nonzero().get());
        Ok(group)
    }

    /// The process, which is also the group's.
    pub(super) fn id(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    /// Its pipes.
    pub(super) fn child(&mut self) -> &mut Child {
        &mut self.child
    }

    /// Kills what is left of the group, and returns how its first process ended.
    pub(super) fn end(&mut self) -> io::Result<ExitStatus> {
        match self.status {
            // Its number may be somebody else's by now.
            Some(status) => Ok(status),
            None => {
                // Nobody is left to be killed, or everybody: both are fine.
                let _ = kill_process_group(self.id(), Signal::KILL);
                // Taken out before it is waited for: after that its number may be somebody else's.
                live().remove(&self.id().as_raw_nonzero().get());
                let status = self.child.wait()?;
                self.status = Some(status);
                Ok(status)
            }
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let _ = self.end();
    }
}

/// Whether a child has exited; it is left to be waited for, so that its number stays its own.
pub(super) fn has_exited(process: Pid) -> bool {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG;
    !matches!(waitid(WaitId::Pid(process), options), Ok(None))
}

/// How a process ended, in words.
pub(super) fn describe(status: io::Result<ExitStatus>, memory_bytes: Option<u64>) -> String {
    let status = match status {
        Ok(status) => status,
        Err(error) => return format!("cannot be waited for: {error}"),
    };
    let Some(signal) = status.signal() else {
        return format!("exited with status {}", status.code().unwrap_or_default());
    };
    let limit = match memory_bytes {
        Some(bytes) if signal == Signal::KILL.as_raw() => format!(" (its memory limit is {} MiB)", bytes >> 20),
        _ => String::new(),
    };
    let known = [
        (Signal::HUP, "SIGHUP"),
        (Signal::INT, "SIGINT"),
        (Signal::QUIT, "SIGQUIT"),
        (Signal::ILL, "SIGILL"),
        (Signal::TRAP, "SIGTRAP"),
        (Signal::ABORT, "SIGABRT"),
        (Signal::BUS, "SIGBUS"),
        (Signal::FPE, "SIGFPE"),
        (Signal::KILL, "SIGKILL"),
        (Signal::SEGV, "SIGSEGV"),
        (Signal::PIPE, "SIGPIPE"),
        (Signal::ALARM, "SIGALRM"),
        (Signal::TERM, "SIGTERM"),
        (Signal::XCPU, "SIGXCPU"),
        (Signal::XFSZ, "SIGXFSZ"),
        (Signal::SYS, "SIGSYS"),
    ];
    match known.iter().find(|(known, _)| known.as_raw() == signal) {
        Some((_, name)) => format!("was killed by {name}{limit}"),
        None => format!("was killed by signal {signal}{limit}"),
    }
}

/// How a process that was run to its end came to it.
#[derive(Debug)]
pub(super) enum Ending {
    /// It exited.
    Exited(io::Result<ExitStatus>),
    /// It was ended for the time it took.
    TimedOut,
    /// It was ended for what it printed.
    TooMuchOutput,
}

/// What a process left behind.
#[derive(Debug)]
pub(super) struct Run {
    /// How it ended.
    pub ending: Ending,
    /// What it printed.
    pub stdout: Vec<u8>,
    /// The end of its stderr.
    pub stderr: Tail,
}

enum Event {
    Exited,
    OutputClosed,
    TooMuchOutput,
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
    let mut group = Group::spawn(command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()))?;
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

    let (mut exited, mut closed, mut too_much) = (false, false, false);
    while !(exited && closed || too_much) {
        match happened.recv_timeout(until.left()) {
            Ok(Event::Exited) => {
                exited = true;
                until = Deadline::after(GRACE);
            }
            Ok(Event::OutputClosed) => closed = true,
            Ok(Event::TooMuchOutput) => too_much = true,
            Err(_) => break,
        }
    }
    let _ = kill_process_group(group.id(), Signal::KILL);
    // Before the process is waited for: until then the watcher's number is that of this process.
    let _ = watcher.join();
    let status = group.end();
    let ending = match (too_much, exited) {
        (true, _) => Ending::TooMuchOutput,
        (false, false) => Ending::TimedOut,
        (false, true) => Ending::Exited(status),
    };
    let stdout = std::mem::take(&mut *output.lock().unwrap_or_else(PoisonError::into_inner));
    Ok(Run { ending, stdout, stderr })
}

/// Writes the input from a thread of its own: the process may print before it reads, or never read.
fn feed(mut stdin: ChildStdin, input: Vec<u8>) -> io::Result<()> {
    thread::Builder::new().name("gpuemu-stdin".to_string()).spawn(move || {
        // A process that does not want its input may still give an answer.
        let _ = stdin.write_all(&input);
    })?;
    Ok(())
}

fn collect(mut stdout: ChildStdout, output: Arc<Mutex<Vec<u8>>>, limit: u64, events: Sender<Event>) -> io::Result<()> {
    thread::Builder::new().name("gpuemu-stdout".to_string()).spawn(move || {
        let mut chunk = vec![0; 64 << 10];
        let event = loop {
            match stdout.read(&mut chunk) {
                Ok(0) => break Event::OutputClosed,
                Ok(count) => {
                    let mut output = output.lock().unwrap_or_else(PoisonError::into_inner);
                    if (output.len() + count) as u64 > limit {
                        break Event::TooMuchOutput;
                    }
                    output.extend_from_slice(&chunk[..count]);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => break Event::OutputClosed,
            }
        };
        // Nobody listens once the process is given up.
        let _ = events.send(event);
    })?;
    Ok(())
}

fn watch(process: Pid, events: Sender<Event>) -> io::Result<JoinHandle<()>> {
    thread::Builder::new().name("gpuemu-watch".to_string()).spawn(move || {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
        while let Err(rustix::io::Errno::INTR) = waitid(WaitId::Pid(process), options) {}
        let _ = events.send(Event::Exited);
    })
}
