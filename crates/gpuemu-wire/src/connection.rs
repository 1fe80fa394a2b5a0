//! A connection to the daemon, as the command line and Python use it: blocking, one request at a time.

use std::io::{self, Read, Write};
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use gpuemu_process::fault;
use thiserror::Error;

use crate::sp::{self, ProtocolError};

/// Why a request got no answer.
#[derive(Debug, Error)]
pub enum TransportError {
    /// Nothing listens on the socket.
    #[error("cannot connect to the daemon at {}: {source}", socket.display())]
    Connect { socket: PathBuf, source: io::Error },
    /// What is there is not this user's own.
    #[error("{} {problem}; nothing is sent to it", socket.display())]
    Foreign { socket: PathBuf, problem: String },
    #[error("the connection to the daemon broke: {0}")]
    Broken(#[from] io::Error),
    /// The connection broke before the daemon had the whole request: nothing was done.
    #[error("the connection to the daemon broke before the request was sent: {0}")]
    NotSent(io::Error),
    /// Whoever asked no longer wants the answer.
    #[error("the wait for the daemon's answer was interrupted")]
    Interrupted,
    /// The daemon did not answer in time.
    #[error("the daemon did not answer within {} s", .0.as_secs_f64())]
    TimedOut(Duration),
    /// The daemon's bytes do not follow the protocol.
    #[error(transparent)]
    Protocol(#[from] ProtocolError),
    /// The answer is longer than this side takes.
    #[error("the answer has {length} bytes; at most {limit} are taken")]
    TooLarge { length: u64, limit: u64 },
}

/// A connection to the daemon.
#[derive(Debug)]
pub struct Connection {
    stream: UnixStream,
    next_id: u32,
    limit: u64,
}

impl Connection {
    /// Connects; answers of more than `limit` bytes are refused.
    pub fn open(socket: &Path, limit: u64, timeout: Duration) -> Result<Self, TransportError> {
        let refused = |source| TransportError::Connect { socket: socket.to_path_buf(), source };
        check_owner(socket)?;
        let mut stream = UnixStream::connect(socket).map_err(refused)?;
        let deadline = Instant::now() + timeout;
        stream.write_all(&sp::handshake(sp::REQUEST))?;
        let mut opening = [0; sp::HANDSHAKE_BYTES];
        read_until(&mut stream, &mut opening, &mut Wait { deadline, timeout, go_on: &mut || true })?;
        sp::check_handshake(opening, sp::REPLY)?;
        // Any first id will do; the process's own keeps two clients of one log apart.
        Ok(Self { stream, next_id: std::process::id() << 8, limit })
    }

    /// Whether the daemon still has its end, as far as is known here. Only between requests.
    pub fn is_open(&mut self) -> bool {
        // An end that was closed reads as nothing at once, an open one would have to wait. Bytes that nobody
        // asked for would be taken for an answer.
        let looked = self.stream.set_nonblocking(true).and_then(|()| self.stream.read(&mut [0]));
        let waits = looked.is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock);
        waits && self.stream.set_nonblocking(false).is_ok()
    }

    /// Sends a request and waits for its answer. After an error the connection is of no more use.
    pub fn request(&mut self, payload: &[u8], timeout: Duration) -> Result<Vec<u8>, TransportError> {
        self.request_while(payload, timeout, &mut || true)
    }

    /// The same; `go_on` is asked now and then whether the answer is still wanted.
    pub fn request_while(
        &mut self,
        payload: &[u8],
        timeout: Duration,
        go_on: &mut dyn FnMut() -> bool,
    ) -> Result<Vec<u8>, TransportError> {
        let deadline = Instant::now() + timeout;
        let mut wait = Wait { deadline, timeout, go_on };
        let id = sp::request_id(self.next_id);
        self.next_id = self.next_id.wrapping_add(1);
        self.stream.set_write_timeout(Some(timeout.max(Duration::from_millis(1))))?;
        let mut head = sp::prefix(id.len() + payload.len()).to_vec();
        head.extend(id);
        let send = |stream: &mut UnixStream| stream.write_all(&head).and_then(|()| stream.write_all(payload));
        let sent = fault!("client.send", io::Error::other("injected"), send(&mut self.stream));
        sent.map_err(|error| match late(error, timeout) {
            TransportError::Broken(error) => TransportError::NotSent(error),
            error => error,
        })?;
        loop {
            let injected = || TransportError::Broken(io::Error::other("injected"));
            let body = fault!("client.read", injected(), self.read_message(&mut wait))?;
            let stack = sp::stack_length(&body)?;
            // An answer to a request that was given up on earlier is passed over.
            if body[..stack] == id {
                return Ok(body[stack..].to_vec());
            }
        }
    }

    fn read_message(&mut self, wait: &mut Wait<'_>) -> Result<Vec<u8>, TransportError> {
        let mut prefix = [0; sp::PREFIX_BYTES];
        read_until(&mut self.stream, &mut prefix, wait)?;
        let length = sp::body_length(prefix)?;
        if length > self.limit {
            return Err(TransportError::TooLarge { length, limit: self.limit });
        }
        let mut body = vec![0; length as usize];
        read_until(&mut self.stream, &mut body, wait)?;
        Ok(body)
    }
}

/// Refuses a socket that somebody else put there to be sent this user's kernels.
fn check_owner(socket: &Path) -> Result<(), TransportError> {
    let foreign = |problem: String| Err(TransportError::Foreign { socket: socket.to_path_buf(), problem });
    match std::fs::symlink_metadata(socket) {
        Ok(found) if found.is_symlink() => foreign("is a link".to_string()),
        Ok(found) if found.uid() != rustix::process::geteuid().as_raw() => {
            foreign(format!("belongs to the user with number {}", found.uid()))
        }
        // What is not there, or cannot be looked at, is an error of connecting.
        _ => Ok(()),
    }
}

/// How long an answer is waited for.
struct Wait<'a> {
    deadline: Instant,
    timeout: Duration,
    go_on: &'a mut dyn FnMut() -> bool,
}

/// How often somebody who waits is asked whether to go on.
const ASK_EVERY: Duration = Duration::from_millis(100);

/// Reads exactly so many bytes, by a moment in time.
fn read_until(stream: &mut UnixStream, mut into: &mut [u8], wait: &mut Wait<'_>) -> Result<(), TransportError> {
    while !into.is_empty() {
        let left = wait.deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(TransportError::TimedOut(wait.timeout));
        }
        stream.set_read_timeout(Some(left.min(ASK_EVERY)))?;
        match stream.read(into) {
            Ok(0) => return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the daemon closed it").into()),
            Ok(count) => into = &mut into[count..],
            Err(error) => match late(error, wait.timeout) {
                TransportError::Broken(error) if error.kind() != io::ErrorKind::Interrupted => {
                    return Err(TransportError::Broken(error));
                }
                // A signal, or time to look around; whether it is too late is seen above.
                _ if (wait.go_on)() => {}
                _ => return Err(TransportError::Interrupted),
            },
        }
    }
    Ok(())
}

/// An error of the socket; one that means "too late" is named so.
fn late(error: io::Error, timeout: Duration) -> TransportError {
    match error.kind() {
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => TransportError::TimedOut(timeout),
        _ => TransportError::Broken(error),
    }
}
