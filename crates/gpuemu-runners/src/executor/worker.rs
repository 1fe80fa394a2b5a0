//! A Python that stays: one process, asked by frames, with a deadline for each answer.

use std::io::{self, BufReader, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use gpuemu_config::Framework;
use gpuemu_process::fault;
use gpuemu_process::{GRACE, Group, describe, has_exited};
use rustix::process::Pid;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::accepted::{Accepted, CallStyle};
use super::frame::{self, FrameError};
use super::process::Deadline;
use super::tail::Tail;
use super::watch::{Seen, Watch};
use super::{ExecutorError, Interpreter};

/// The program of a worker: what it imports from the project must not be mistaken for a part of it, so it is one text.
const WORKER: &str = concat!(
    include_str!("start.py"),
    include_str!("worker/messages.py"),
    include_str!("worker/loaded_files.py"),
    include_str!("worker/scripts.py"),
    include_str!("worker/arrays.py"),
    include_str!("../../../../python/gpuemu/_runs/signature.py"),
    include_str!("../../../../python/gpuemu/_runs/watched_memory.py"),
    include_str!("../../../../python/gpuemu/_launches/watched_kernel.py"),
    include_str!("worker/float_environment.py"),
    include_str!("worker/callables.py"),
    include_str!("worker/worker.py"),
);

/// How long a worker may take to start and to import what it is to run.
const LOAD_TIMEOUT: Duration = Duration::from_secs(120);

/// How long an idle worker may take to answer.
const IDLE_TIMEOUT: Duration = Duration::from_secs(5);

/// How often a worker that is silent is looked at.
const LOOK: Duration = Duration::from_millis(50);

/// What a worker is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Key {
    pub interpreter: Interpreter,
    pub work: Work,
}

/// What a worker runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Work {
    Script(PathBuf),
    Callable { target: String, op: String, framework: Framework, launches: Option<String> },
}

impl Work {
    /// Its name in messages.
    fn name(&self) -> String {
        match self {
            Work::Script(path) => path.display().to_string(),
            Work::Callable { target, .. } => format!("the callable {target}"),
        }
    }
}

/// What a worker is asked.
#[derive(Serialize)]
#[serde(tag = "do", rename_all = "snake_case")]
pub(super) enum Request<'a> {
    /// Its blob is the path: not every path is text.
    LoadScript,
    /// Its blob is the document.
    RunScript,
    LoadCallable {
        target: &'a str,
        op: &'a str,
        framework: Framework,
        launches: Option<&'a str>,
    },
    /// Its blobs are the storages of the inputs, and the memory that outputs are to be written into.
    RunCallable {
        style: CallStyle,
        inputs: Vec<View<'a>>,
        outs: Vec<View<'a>>,
        parameters: Map<String, Value>,
        watch: Option<&'a Watch>,
    },
    Stale,
    Mark {
        mark: &'a str,
    },
}

/// An input, or memory for an output: a view of its storage, strides and offset in elements.
#[derive(Serialize)]
pub(super) struct View<'a> {
    pub name: &'a str,
    pub dtype: &'static str,
    pub element_bytes: usize,
    pub shape: &'a [usize],
    pub strides: &'a [isize],
    pub offset: usize,
}

/// What a worker answers.
#[derive(Debug, Deserialize)]
#[serde(tag = "is", rename_all = "snake_case")]
pub(super) enum Answer {
    Loaded,
    Accepts(Accepted),
    /// Its blob is what was printed.
    Printed,
    /// Its blobs are the outputs, or the memory that they were written into.
    Returned {
        outputs: Vec<Output>,
        seen: Vec<Seen>,
        /// What it raised after all, where what was seen tells more.
        #[serde(default)]
        raised: Option<String>,
    },
    Stale {
        changed: Option<String>,
    },
    Marked,
    NotLoaded {
        text: String,
    },
    Raised {
        text: String,
    },
    Exited {
        status: i32,
    },
    NoArray {
        text: String,
    },
    TooLarge,
}

/// An output of a callable.
#[derive(Debug, Deserialize)]
pub(super) struct Output {
    pub name: String,
    pub dtype: String,
    pub shape: Vec<usize>,
}

/// A worker. Dropped, it is ended with every process it has started.
#[derive(Debug)]
pub(super) struct Worker {
    key: Key,
    group: Group,
    stream: BufReader<Patient>,
    stderr: Tail,
    healthy: bool,
    /// What its callable takes.
    pub accepted: Accepted,
    /// Calls it was given.
    pub calls: u64,
}

impl Worker {
    /// Starts a worker and has it load what it is to run.
    pub(super) fn start(key: &Key) -> Result<Self, ExecutorError> {
        let mut command = key.interpreter.command(WORKER);
        let limit = key.interpreter.output_bytes.to_string();
        command.arg(key.interpreter.root()).arg(key.interpreter.memory_argument()).arg(limit);
        let started = (|| {
            let (own, other) = UnixStream::pair()?;
            command.stdin(Stdio::from(OwnedFd::from(other.try_clone()?))).stdout(Stdio::from(OwnedFd::from(other)));
            let spawned = Group::spawn(command.stderr(Stdio::piped()));
            let mut group = fault!("worker.start", io::Error::other("injected"), spawned)?;
            let stderr = group.child().stderr.take().ok_or_else(|| io::Error::other("stderr is missing"))?;
            Ok((Patient::new(own, group.id())?, group, Tail::of(stderr)?))
        })();
        let (stream, group, stderr) = started.map_err(|error| key.interpreter.spawn_error(&command, &error))?;
        // The command holds the worker's end of the connection, which would never look closed.
        drop(command);
        let stream = BufReader::with_capacity(64 << 10, stream);
        let accepted = Accepted::default();
        let mut worker = Self { key: key.clone(), group, stream, stderr, healthy: true, accepted, calls: 0 };
        worker.load()?;
        Ok(worker)
    }

    fn load(&mut self) -> Result<(), ExecutorError> {
        let work = self.key.work.clone();
        let (answer, _) = match &work {
            Work::Script(path) => self.ask(&Request::LoadScript, &[path.as_os_str().as_bytes()], LOAD_TIMEOUT)?,
            Work::Callable { target, op, framework, launches } => {
                let (framework, launches) = (*framework, launches.as_deref());
                self.ask(&Request::LoadCallable { target, op, framework, launches }, &[], LOAD_TIMEOUT)?
            }
        };
        match answer {
            Answer::Loaded => Ok(()),
            Answer::Accepts(accepted) => {
                self.accepted = accepted;
                Ok(())
            }
            other => Err(self.unexpected(&other)),
        }
    }

    pub(super) fn key(&self) -> &Key {
        &self.key
    }

    /// Its name in messages.
    pub(super) fn what(&self) -> String {
        self.key.work.name()
    }

    /// Whether it can be asked again.
    pub(super) fn is_healthy(&self) -> bool {
        self.healthy
    }

    /// Whether it runs what is no longer in the files, or cannot say so.
    pub(super) fn is_stale(&mut self) -> bool {
        !matches!(self.ask(&Request::Stale, &[], IDLE_TIMEOUT), Ok((Answer::Stale { changed: None }, _)))
    }

    /// Asks for something and waits for the answer. What stands in the way of one ends the worker; what the script
    /// or callable did wrong does not.
    pub(super) fn ask(
        &mut self,
        request: &Request<'_>,
        blobs: &[&[u8]],
        timeout: Duration,
    ) -> Result<(Answer, Vec<Vec<u8>>), ExecutorError> {
        self.stderr.clear();
        let (answer, blobs) = match self.exchange(request, blobs, timeout) {
            Ok(answered) => answered,
            Err(error) => return Err(self.give_up(error, timeout)),
        };
        let what = self.what();
        match answer {
            Answer::Raised { text } => {
                Err(ExecutorError::Raised { what, traceback: text, stderr: self.stderr_so_far() })
            }
            Answer::Exited { status } => {
                let status = format!("exited with status {status}");
                Err(ExecutorError::Failed { what, status, stderr: self.stderr_so_far() })
            }
            Answer::NotLoaded { text } => {
                let Work::Callable { target, .. } = &self.key.work else {
                    return Err(ExecutorError::Protocol { what, message: text });
                };
                let target = target.clone();
                Err(ExecutorError::Import { target, message: text, stderr: self.stderr_so_far() })
            }
            Answer::NoArray { text } => Err(self.bad_output(text)),
            Answer::TooLarge => Err(self.give_up(FrameError::TooLarge, timeout)),
            answer => Ok((answer, blobs)),
        }
    }

    /// An output that is wrong.
    pub(super) fn bad_output(&mut self, message: String) -> ExecutorError {
        let (what, stdout) = (self.what(), String::new());
        ExecutorError::BadOutput { what, message, stdout, stderr: self.stderr_so_far() }
    }

    /// An answer to something that was not asked.
    pub(super) fn unexpected(&mut self, answer: &Answer) -> ExecutorError {
        self.healthy = false;
        ExecutorError::Protocol { what: self.what(), message: format!("unexpected answer {answer:?}") }
    }

    /// What was written to stderr since the last question, all of it: the worker marks where that ends.
    pub(super) fn stderr_so_far(&mut self) -> String {
        let mark = format!("\0end {}\0", self.calls);
        let marked = self.exchange(&Request::Mark { mark: &mark }, &[], IDLE_TIMEOUT);
        self.healthy &= marked.is_ok();
        self.stderr.before(&mark, GRACE)
    }

    fn exchange(
        &mut self,
        request: &Request<'_>,
        blobs: &[&[u8]],
        timeout: Duration,
    ) -> Result<(Answer, Vec<Vec<u8>>), FrameError> {
        let stream = self.stream.get_mut();
        stream.deadline = Deadline::after(timeout);
        fault!("worker.write", io::Error::other("injected"), frame::write(stream, request, blobs))?;
        let answer = frame::read(&mut self.stream, self.key.interpreter.output_bytes);
        fault!("worker.read", FrameError::Nonsense("injected".to_string()), answer)
    }

    /// Ends the worker and says why.
    fn give_up(&mut self, error: FrameError, timeout: Duration) -> ExecutorError {
        self.healthy = false;
        let what = self.what();
        match error {
            FrameError::TooLarge => {
                let _ = self.group.end();
                let (limit, stderr) = (self.key.interpreter.output_bytes, self.stderr.at_end(GRACE));
                ExecutorError::OutputTooLarge { what, limit, stderr }
            }
            FrameError::Nonsense(message) => ExecutorError::Protocol { what, message },
            FrameError::Stream(error) if error.kind() == io::ErrorKind::TimedOut => {
                let _ = self.group.end();
                ExecutorError::TimedOut { what, limit: timeout, stderr: self.stderr.at_end(GRACE) }
            }
            FrameError::Stream(error) => {
                // Its end of the connection is closed just before it counts as exited.
                let deadline = Deadline::after(GRACE);
                while !has_exited(self.group.id()) {
                    if deadline.left().is_zero() {
                        return ExecutorError::Protocol { what, message: format!("it closed its connection: {error}") };
                    }
                    std::thread::sleep(Duration::from_millis(1));
                }
                let status = describe(self.group.end(), self.key.interpreter.memory_bytes);
                ExecutorError::Failed { what, status, stderr: self.stderr.at_end(GRACE) }
            }
        }
    }
}

/// The connection to a worker: it waits until the deadline, but not for a worker that is gone.
#[derive(Debug)]
struct Patient {
    stream: UnixStream,
    worker: Pid,
    deadline: Deadline,
}

impl Patient {
    fn new(stream: UnixStream, worker: Pid) -> io::Result<Self> {
        stream.set_read_timeout(Some(LOOK))?;
        stream.set_write_timeout(Some(LOOK))?;
        Ok(Self { stream, worker, deadline: Deadline::after(LOAD_TIMEOUT) })
    }

    /// Tries until it works. `gone` is the result where the worker no longer is; a process that it forked may hold
    /// the connection open for ever.
    fn persist(
        &mut self,
        gone: io::Result<usize>,
        mut attempt: impl FnMut(&mut UnixStream) -> io::Result<usize>,
    ) -> io::Result<usize> {
        let mut exited = false;
        loop {
            // Also where it works: an answer that trickles in would never end.
            if self.deadline.left().is_zero() {
                return Err(io::ErrorKind::TimedOut.into());
            }
            match attempt(&mut self.stream) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    if exited {
                        return gone;
                    }
                    // What it wrote before its end is still read.
                    exited = has_exited(self.worker);
                }
                done => return done,
            }
        }
    }
}

impl Read for Patient {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.persist(Ok(0), |stream| stream.read(into))
    }
}

impl Write for Patient {
    fn write(&mut self, from: &[u8]) -> io::Result<usize> {
        self.persist(Err(io::ErrorKind::BrokenPipe.into()), |stream| stream.write(from))
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
