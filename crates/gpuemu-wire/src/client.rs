//! The typed client: requests go in, answers come out, errors are errors.

use std::path::{Path, PathBuf};
use std::time::Duration;

use gpuemu_model::error_code::ErrorCode;
use gpuemu_model::json::{FromJson, ToJson};
use gpuemu_model::tensor_data::Payload;
use gpuemu_process::fault;
use thiserror::Error;

use crate::connection::{Connection, TransportError};
use crate::protocol::{Frame, FrameError, JobReference, JobState, JobStatus, PROTOCOL_VERSION, Request, Response};

/// Answers of more bytes than this are refused.
const ANSWER_LIMIT: u64 = 4 << 30;

/// How often progress is looked at; the end of a job is seen at once.
const JOB_POLL: Duration = Duration::from_millis(100);

/// Why a request was not done.
#[derive(Debug, Error)]
pub enum ClientError {
    #[error(transparent)]
    Transport(#[from] TransportError),
    /// The daemon says no.
    #[error("{message}")]
    Refused {
        /// What kind of error.
        code: ErrorCode,
        message: String,
        hint: Option<String>,
    },
    /// The daemon is of another version.
    #[error("the daemon is gpuemu {version} with protocol {theirs}, this is protocol {PROTOCOL_VERSION}")]
    Version {
        version: String,
        /// The version of its protocol.
        theirs: u32,
    },
    /// The answer cannot be read.
    #[error("the daemon's answer cannot be read: {0}")]
    Unreadable(String),
}

impl From<FrameError> for ClientError {
    fn from(error: FrameError) -> Self {
        ClientError::Unreadable(error.to_string())
    }
}

/// An answer with the message it came in, which tensors of the answer point into.
#[derive(Debug)]
pub struct Reply {
    pub response: Response,
    message: Vec<u8>,
}

impl Reply {
    /// The tensor bytes of a binary answer.
    pub fn payload(&self) -> &[u8] {
        Frame::parse(&self.message).map_or(&[], |frame| frame.payload)
    }
}

/// A client of the daemon.
#[derive(Debug)]
pub struct Client {
    connection: Connection,
    socket: PathBuf,
    timeout: Duration,
}

impl Client {
    /// Connects, and makes sure that both sides speak the same version. `timeout` holds for each request.
    pub fn connect(socket: &Path, timeout: Duration) -> Result<Self, ClientError> {
        let connection = Connection::open(socket, ANSWER_LIMIT, timeout.min(Duration::from_secs(10)))?;
        let mut client = Self { connection, socket: socket.to_path_buf(), timeout };
        match client.call(&Request::Ping { protocol_version: None })? {
            Response::Pong { protocol_version, .. } if protocol_version == PROTOCOL_VERSION => Ok(client),
            Response::Pong { version, protocol_version: theirs, .. } => Err(ClientError::Version { version, theirs }),
            other => Err(unexpected(&other)),
        }
    }

    pub fn socket(&self) -> &Path {
        &self.socket
    }

    /// Asks, with everything in the JSON text or in shared memory.
    pub fn call(&mut self, request: &Request) -> Result<Response, ClientError> {
        Ok(self.exchange(request, &Payload::default())?.response)
    }

    /// Asks, with tensors behind the text if there are some.
    pub fn exchange(&mut self, request: &Request, payload: &Payload) -> Result<Reply, ClientError> {
        let unreadable = |error: serde_json::Error| ClientError::Unreadable(error.to_string());
        let injected = || ClientError::Unreadable("injected".to_string());
        let header = fault!("client.encode", injected(), request.to_json().map_err(unreadable))?;
        let bytes = if payload.bytes().is_empty() {
            header.into_bytes()
        } else {
            Frame::build(header.as_bytes(), payload.bytes())
        };
        let message = self.connection.request(&bytes, self.timeout)?;
        let frame = Frame::parse(&message)?;
        let response = fault!("client.decode", injected(), Response::from_json(frame.header).map_err(unreadable))?;
        Ok(Reply { response: refused(response)?, message })
    }

    /// Whether the daemon still has its end of the connection, as far as is known here.
    pub fn is_open(&mut self) -> bool {
        self.connection.is_open()
    }

    /// Sends a message as it is and returns the answer as it is: for clients that read and write JSON
    /// themselves. `go_on` is asked now and then whether the answer is still wanted; after an error the client is
    /// of no more use.
    pub fn exchange_bytes(
        &mut self,
        message: &[u8],
        timeout: Duration,
        go_on: &mut dyn FnMut() -> bool,
    ) -> Result<Vec<u8>, ClientError> {
        Ok(self.connection.request_while(message, timeout, go_on)?)
    }

    /// Does something long in the background of the daemon; see [`run_job`].
    pub fn run_job(
        &mut self,
        request: Request,
        watch: impl FnMut(&JobStatus) -> bool,
    ) -> Result<Response, ClientError> {
        run_job(|request| self.call(request), request, watch)
    }
}

/// Does something long as a job of whoever answers. `watch` sees its progress and says whether to go on;
/// a job that is stopped still has an answer.
pub fn run_job(
    mut call: impl FnMut(&Request) -> Result<Response, ClientError>,
    request: Request,
    mut watch: impl FnMut(&JobStatus) -> bool,
) -> Result<Response, ClientError> {
    let mut ask = |request: &Request| match call(request)? {
        Response::Job { job } => Ok(job),
        other => Err(unexpected(&other)),
    };
    let mut status = ask(&Request::SubmitJob { job: Box::new(request) })?;
    let mut cancelled = false;
    loop {
        let go_on = watch(&status);
        if let (JobState::Done | JobState::Cancelled, Some(result)) = (status.state, status.result) {
            return refused(*result);
        }
        let reference = JobReference { job: status.job, wait_ms: JOB_POLL.as_millis() as u64 };
        if !go_on && !cancelled {
            cancelled = true;
            ask(&Request::CancelJob(reference.clone()))?;
        }
        status = ask(&Request::JobStatus(reference))?;
    }
}

/// An answer, or the error that it is.
pub fn refused(response: Response) -> Result<Response, ClientError> {
    match response {
        Response::Error { code, message, hint } => Err(ClientError::Refused { code, message, hint }),
        response => Ok(response),
    }
}

/// An answer that has nothing to do with the question.
pub fn unexpected(response: &Response) -> ClientError {
    let kind = response.to_json_value().ok().and_then(|value| value["type"].as_str().map(ToString::to_string));
    ClientError::Unreadable(format!("unexpected response: {}", kind.unwrap_or_default()))
}
