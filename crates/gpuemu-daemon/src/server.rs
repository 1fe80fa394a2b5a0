//! The daemon's answers: bytes in, bytes out, whatever the bytes are.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use gpuemu_model::error_code::ErrorCode;
use gpuemu_model::json::{FromJson, ToJson};
use gpuemu_process::fault;
use gpuemu_service::{Answer, Service};
use gpuemu_wire::protocol::{Frame, Request, Response};
use gpuemu_wire::shared_memory;
use tokio::sync::Notify;

use crate::transport::{Handler, Message};

/// Bytes of a message that are read at once; every Ping is shorter.
const SHORT_MESSAGE: usize = 1024;

/// What the daemon does with requests.
pub struct Daemon {
    service: Arc<Service>,
    /// Told when somebody wants the daemon to end.
    shutdown: Notify,
    started: Instant,
    /// Milliseconds after the start at which the last request was answered.
    last_request: AtomicU64,
    answering: AtomicUsize,
    /// Whether somebody is about to look for what clients left behind.
    sweeping: Arc<AtomicBool>,
}

/// What a process that was killed had open is closed one after the other, its connection perhaps first.
const SWEEP_AFTER: Duration = Duration::from_millis(200);

impl Daemon {
    /// A daemon over a service.
    pub fn new(service: Arc<Service>) -> Arc<Self> {
        Arc::new(Self {
            service,
            shutdown: Notify::new(),
            started: Instant::now(),
            last_request: AtomicU64::new(0),
            answering: AtomicUsize::new(0),
            sweeping: Arc::default(),
        })
    }

    /// Returns when somebody wants the daemon to end.
    pub async fn ended(&self) {
        self.shutdown.notified().await;
    }

    pub fn service(&self) -> &Arc<Service> {
        &self.service
    }

    /// How long nothing was asked and nothing was done.
    pub fn idle(&self) -> Duration {
        if self.answering.load(Ordering::Relaxed) > 0 || self.service.jobs().running() > 0 {
            self.touch();
        }
        let last = Duration::from_millis(self.last_request.load(Ordering::Relaxed));
        self.started.elapsed().saturating_sub(last)
    }

    fn touch(&self) {
        self.last_request.store(self.started.elapsed().as_millis() as u64, Ordering::Relaxed);
    }

    /// The answer as bytes. What may take long, reading and writing of large messages included, is done on a thread
    /// of its own: those that serve connections are few, and a Ping waits for them.
    async fn respond(&self, message: Message) -> Vec<u8> {
        let short = (message.payload().len() <= SHORT_MESSAGE).then(|| parse(&message));
        match short {
            Some(Ok(request @ Request::Ping { .. })) => encode(&self.service.answer(request, &[])),
            Some(Ok(Request::Shutdown)) => self.shut_down(),
            Some(Err(message)) => refusal(message),
            short => {
                let service = self.service.clone();
                let work = move || {
                    gpuemu_process::stand_back();
                    let request = match short.unwrap_or_else(|| parse(&message)) {
                        Ok(Request::Shutdown) => return None,
                        Ok(request) => request,
                        Err(message) => return Some(refusal(message)),
                    };
                    // Parsed once before; a frame that was one still is.
                    let payload = Frame::parse(message.payload()).map_or(&[][..], |frame| frame.payload);
                    Some(encode(&service.answer(request, payload)))
                };
                match tokio::task::spawn_blocking(work).await {
                    Ok(Some(answer)) => answer,
                    Ok(None) => self.shut_down(),
                    Err(error) => {
                        encode(&Response::error(ErrorCode::InternalError, format!("internal error: {error}")).into())
                    }
                }
            }
        }
    }

    fn shut_down(&self) -> Vec<u8> {
        self.service.jobs().cancel_all();
        self.shutdown.notify_one();
        encode(&Response::Ok.into())
    }
}

/// The answer to a message that is no request.
fn refusal(message: String) -> Vec<u8> {
    encode(&Response::error(ErrorCode::InvalidRequest, message).into())
}

fn parse(message: &Message) -> Result<Request, String> {
    let frame = Frame::parse(message.payload()).map_err(|error| error.to_string())?;
    let request = Request::from_json(frame.header).map_err(|error| error.to_string());
    let request = fault!("server.parse", "injected".to_string(), request);
    request.map_err(|error| format!("the request cannot be understood: {error}"))
}

/// An answer as bytes.
fn encode(answer: &Answer) -> Vec<u8> {
    let header = answer.response.to_json().map_err(|error| error.to_string());
    let header = fault!("server.encode", "injected".to_string(), header).unwrap_or_else(|error| {
        // Nothing in an answer is unwritable; if it were, the client should hear of it.
        format!(r#"{{"type":"Error","code":"InternalError","message":"the answer cannot be written: {error}"}}"#)
    });
    if answer.payload.bytes().is_empty() {
        header.into_bytes()
    } else {
        Frame::build(header.as_bytes(), answer.payload.bytes())
    }
}

impl Handler for Daemon {
    async fn answer(&self, request: Message) -> Vec<u8> {
        self.answering.fetch_add(1, Ordering::Relaxed);
        let answer = self.respond(request).await;
        self.answering.fetch_sub(1, Ordering::Relaxed);
        self.touch();
        answer
    }

    fn broke_off(&self) -> Vec<u8> {
        let message = "internal error: the request panicked";
        encode(&Response::error(ErrorCode::InternalError, message).into())
    }

    fn too_large(&self, length: u64, limit: u64) -> Vec<u8> {
        let message = format!("the message has {length} bytes; at most {limit} are taken");
        encode(&Response::error(ErrorCode::InvalidRequest, message).into())
    }

    fn client_gone(&self) {
        if !self.sweeping.swap(true, Ordering::Relaxed) {
            tokio::spawn(sweep(self.sweeping.clone()));
        }
    }
}

/// Removes shared memory of clients that ended without doing so.
async fn sweep(sweeping: Arc<AtomicBool>) {
    tokio::time::sleep(SWEEP_AFTER).await;
    sweeping.store(false, Ordering::Relaxed);
    // What is left behind at worst is found after the next client.
    let _ = tokio::task::spawn_blocking(shared_memory::remove_abandoned).await;
}
