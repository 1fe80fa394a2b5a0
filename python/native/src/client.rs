//! The daemon as Python talks to it: JSON and arrays of bytes in, JSON and an array of bytes out.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use gpuemu_tensor::storage::ALIGNMENT;
use gpuemu_wire::protocol::Frame;
use gpuemu_wire::start::{self, Connected};
use gpuemu_wire::{Client, ClientError, StartError, TransportError};
use numpy::{PyArray1, PyReadonlyArray1};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PySlice;

use crate::client_error::{client_error, exception, not_running, start_error};
use crate::shared_segment::contiguous;

/// How long the daemon may take to start.
const START_TIME: Duration = Duration::from_secs(20);

/// How long the daemon may take to answer the ping of a new connection.
const CONNECT_TIME: Duration = Duration::from_secs(30);

/// The longest time that is waited for anything: beyond it the clock's numbers end.
const LONGEST_TIME: Duration = Duration::from_secs(1 << 30);

/// Connections that are kept for later requests.
const MOST_IDLE: usize = 8;

/// Connections to the daemon, one for each request that is on its way: none waits for another.
#[pyclass(frozen, module = "gpuemu._native")]
pub struct DaemonConnection {
    socket: PathBuf,
    program: Option<PathBuf>,
    hint: Option<String>,
    timeout: Duration,
    pool: Mutex<Pool>,
}

/// Connections that nobody uses now.
struct Pool {
    /// The process that opened them. A fork has copies, but two processes must not speak over one connection.
    process: u32,
    idle: Vec<Client>,
}

/// Why a request has no answer.
enum CallError {
    Start(StartError),
    Client(ClientError),
    NotRunning,
    Raised(PyErr),
}

#[pymethods]
impl DaemonConnection {
    /// Nothing is opened before the first request. `program` is started where no daemon listens; without
    /// one, `hint` says what to do.
    #[new]
    #[pyo3(signature = (socket, timeout, program=None, hint=None))]
    fn new(socket: PathBuf, timeout: f64, program: Option<PathBuf>, hint: Option<String>) -> PyResult<Self> {
        let pool = Mutex::new(Pool { process: std::process::id(), idle: Vec::new() });
        Ok(Self { socket: std::path::absolute(socket)?, program, hint, timeout: seconds(timeout)?, pool })
    }

    /// The socket.
    #[getter]
    fn socket(&self) -> &Path {
        &self.socket
    }

    /// Sends a request and returns the answer: its JSON, and the bytes that its tensors point into. The arrays
    /// go behind the request one after the other, each at the next multiple of 64 bytes. A request that may be done
    /// twice is sent again where a connection that was open before breaks, as it does when the daemon ends.
    #[pyo3(signature = (request, arrays, timeout=None, repeatable=false))]
    fn call<'py>(
        &self,
        py: Python<'py>,
        request: &str,
        arrays: Vec<PyReadonlyArray1<'py, u8>>,
        timeout: Option<f64>,
        repeatable: bool,
    ) -> PyResult<(String, Bound<'py, PyArray1<u8>>)> {
        let timeout = timeout.map_or(Ok(self.timeout), seconds)?;
        let parts: Vec<&[u8]> = arrays.iter().map(contiguous).collect::<PyResult<_>>()?;
        let message = py.detach(|| message_of(request, &parts));
        let kept = self.pool().idle.pop();
        let reused = kept.is_some();
        let mut answered = self.exchange(py, kept, &message, timeout);
        let again = match &answered {
            // The daemon ended just now, and has not seen the request: another one may.
            Err(CallError::Client(ClientError::Transport(TransportError::NotSent(_)))) => true,
            Err(CallError::Client(ClientError::Transport(TransportError::Broken(_)))) => reused && repeatable,
            _ => false,
        };
        if again {
            self.close();
            answered = self.exchange(py, None, &message, timeout);
        }
        let answer = answered.map_err(|error| self.raised(py, error))?;
        split(py, answer)
    }

    /// Closes the connections; the next request opens another.
    fn close(&self) {
        self.pool().idle.clear();
    }
}

impl DaemonConnection {
    /// The pool of this process. It is locked only while the interpreter is: no fork finds it taken.
    fn pool(&self) -> MutexGuard<'_, Pool> {
        let mut pool = self.pool.lock().unwrap_or_else(PoisonError::into_inner);
        if pool.process != std::process::id() {
            *pool = Pool { process: std::process::id(), idle: Vec::new() };
        }
        pool
    }

    fn exchange(
        &self,
        py: Python<'_>,
        kept: Option<Client>,
        message: &[u8],
        timeout: Duration,
    ) -> Result<Vec<u8>, CallError> {
        let (answer, started) = py.detach(|| {
            let mut started = None;
            let client = match kept.and_then(|mut client| client.is_open().then_some(client)) {
                Some(client) => Ok(client),
                None => self.connect(timeout.min(CONNECT_TIME)).map(|connected| {
                    started = connected.started;
                    connected.client
                }),
            };
            let answer = client.and_then(|mut client| {
                let answer = converse(&mut client, message, timeout)?;
                Ok((client, answer))
            });
            (answer, started)
        });
        if let Some(process) = started {
            log_start(py, process).map_err(CallError::Raised)?;
        }
        let (client, answer) = answer?;
        let mut pool = self.pool();
        if pool.idle.len() < MOST_IDLE {
            pool.idle.push(client);
        }
        Ok(answer)
    }

    fn connect(&self, timeout: Duration) -> Result<Connected, CallError> {
        let Some(program) = &self.program else {
            let client = start::connect(&self.socket, timeout).map_err(CallError::Client)?;
            return client.map(|client| Connected { client, started: None }).ok_or(CallError::NotRunning);
        };
        let command = || {
            let mut command = Command::new(program);
            command.arg("--detached").env("GPUEMU_SOCKET", &self.socket);
            if let Some(home) = std::env::var_os("GPUEMU_HOME").filter(|home| !home.is_empty()) {
                // It runs in another folder than this process.
                command.env("GPUEMU_HOME", std::path::absolute(home)?);
            }
            Ok(command)
        };
        start::connect_or_start(&self.socket, timeout, START_TIME, command).map_err(CallError::Start)
    }

    fn raised(&self, py: Python<'_>, error: CallError) -> PyErr {
        match error {
            CallError::Start(error) => start_error(py, &error),
            CallError::Client(error) => client_error(py, &error),
            CallError::NotRunning => not_running(py, &self.socket, self.hint.as_deref()),
            CallError::Raised(error) => error,
        }
    }
}

/// Asks and waits; a signal whose handler raises ends the wait.
fn converse(client: &mut Client, message: &[u8], timeout: Duration) -> Result<Vec<u8>, CallError> {
    let mut raised = None;
    let mut go_on = || {
        raised = Python::attach(|py| py.check_signals()).err();
        raised.is_none()
    };
    let answer = client.exchange_bytes(message, timeout, &mut go_on);
    answer.map_err(|error| raised.map_or(CallError::Client(error), CallError::Raised))
}

/// A message: plain JSON, or a binary frame where there are arrays.
fn message_of(request: &str, parts: &[&[u8]]) -> Vec<u8> {
    if parts.is_empty() {
        return request.as_bytes().to_vec();
    }
    let length = parts.iter().fold(0, |length: usize, part| length.next_multiple_of(ALIGNMENT) + part.len());
    let mut message = Frame::build(request.as_bytes(), &[]);
    message.reserve_exact(length);
    for part in parts {
        // The payload begins at a multiple of the alignment, so what is aligned in the message is so in the payload.
        message.resize(message.len().next_multiple_of(ALIGNMENT), 0);
        message.extend_from_slice(part);
    }
    message
}

/// An answer as Python gets it. The payload is not copied.
fn split<'py>(py: Python<'py>, answer: Vec<u8>) -> PyResult<(String, Bound<'py, PyArray1<u8>>)> {
    let unreadable = |error: String| {
        let message = format!("the daemon's answer cannot be read: {error}");
        exception(py, "ConnectionError", "Unreadable", &message, None)
    };
    let frame = Frame::parse(&answer).map_err(|error| unreadable(error.to_string()))?;
    let text = std::str::from_utf8(frame.header).map_err(|error| unreadable(error.to_string()))?.to_string();
    let (length, payload) = (answer.len(), frame.payload.len());
    if payload == 0 {
        return Ok((text, PyArray1::from_vec(py, Vec::new())));
    }
    let whole = PyArray1::from_vec(py, answer);
    let (start, end) = ((length - payload) as isize, length as isize);
    let part = whole.as_any().get_item(PySlice::new(py, start, end, 1))?;
    Ok((text, part.cast_into::<PyArray1<u8>>()?))
}

fn seconds(value: f64) -> PyResult<Duration> {
    let duration = Duration::try_from_secs_f64(value).ok().filter(|duration| !duration.is_zero());
    let duration = duration.map(|duration| duration.min(LONGEST_TIME));
    duration.ok_or_else(|| PyValueError::new_err(format!("timeout is {value}; it must be a number of seconds above 0")))
}

fn log_start(py: Python<'_>, process: u32) -> PyResult<()> {
    let logger = py.import("logging")?.call_method1("getLogger", ("gpuemu",))?;
    logger.call_method1("info", ("started the daemon (process %d)", process))?;
    Ok(())
}
