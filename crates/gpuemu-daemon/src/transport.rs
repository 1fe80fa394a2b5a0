//! The answering side of REQ/REP: many connections, many requests at once, one user.

use std::future::Future;
use std::io;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use gpuemu_process::fault;
use gpuemu_wire::sp::{self, ProtocolError};
use thiserror::Error;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{Semaphore, mpsc};

use crate::known_requests::KnownRequests;

/// Requests of one connection that are read and not yet answered; the next ones wait in the socket.
const MOST_REQUESTS: usize = 64;

/// Answers that may wait for a client that does not read before its requests wait too.
const WAITING_ANSWERS: usize = 64;

/// A request as it was read: the words of its stack, and the message behind them. Messages may be large
/// and are never copied.
#[derive(Debug)]
pub struct Message {
    body: Vec<u8>,
    stack: usize,
}

impl Message {
    pub fn payload(&self) -> &[u8] {
        &self.body[self.stack..]
    }
}

/// What is done with a request.
pub trait Handler: Send + Sync + 'static {
    fn answer(&self, request: Message) -> impl Future<Output = Vec<u8>> + Send;

    /// What a client hears whose request broke off.
    fn broke_off(&self) -> Vec<u8>;

    /// The answer to a request that is too long to be read.
    fn too_large(&self, length: u64, limit: u64) -> Vec<u8>;

    fn client_gone(&self) {}
}

/// Why there is no server.
#[derive(Debug, Error)]
pub enum ServerError {
    /// Another server is there and answers.
    #[error("another daemon listens on {}", .0.display())]
    InUse(PathBuf),
    /// The path is taken by something that is not a socket.
    #[error("{} exists and is not a socket; it is left alone", .0.display())]
    NotASocket(PathBuf),
    /// The socket cannot be made.
    #[error("cannot listen on {}: {source}", path.display())]
    Bind { path: PathBuf, source: io::Error },
}

/// A socket that requests come in by.
#[derive(Debug)]
pub struct Server {
    listener: UnixListener,
    path: PathBuf,
    limit: u64,
}

impl Server {
    /// Listens on a path. A socket that nobody listens on any more is replaced; anything else is left alone.
    pub fn bind(path: &Path, limit: u64) -> Result<Self, ServerError> {
        let failed = |source| ServerError::Bind { path: path.to_path_buf(), source };
        match std::fs::symlink_metadata(path) {
            Ok(found) if !found.file_type().is_socket() => return Err(ServerError::NotASocket(path.to_path_buf())),
            Ok(_) if std::os::unix::net::UnixStream::connect(path).is_ok() => {
                return Err(ServerError::InUse(path.to_path_buf()));
            }
            Ok(_) => std::fs::remove_file(path).map_err(failed)?,
            Err(_) => {}
        }
        let listener = UnixListener::bind(path).map_err(failed)?;
        // Whoever slips in before this is turned away by its user id.
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600)).map_err(failed)?;
        Ok(Self { listener, path: path.to_path_buf(), limit })
    }

    /// Serves connections until the future is dropped.
    pub async fn serve<H: Handler>(&self, handler: Arc<H>) {
        let own = own_user();
        loop {
            let Ok((stream, _)) = self.listener.accept().await else {
                // Out of file descriptors, say: give connections time to end.
                tokio::time::sleep(std::time::Duration::from_millis(50)).await;
                continue;
            };
            let same_user = stream.peer_cred().is_ok_and(|peer| Some(peer.uid()) == own);
            if same_user {
                tokio::spawn(connection(stream, handler.clone(), self.limit));
            }
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Only a convenience: a socket left behind is replaced by the next server.
        let _ = std::fs::remove_file(&self.path);
    }
}

/// The user of this process, as the kernel names it to a peer. Without it nobody is let in.
fn own_user() -> Option<u32> {
    let (one, _other) = UnixStream::pair().ok()?;
    one.peer_cred().ok().map(|peer| peer.uid())
}

async fn connection<H: Handler>(stream: UnixStream, handler: Arc<H>, limit: u64) {
    let (reader, writer) = stream.into_split();
    let (answers, waiting) = mpsc::channel(WAITING_ANSWERS);
    tokio::spawn(write_answers(writer, waiting));
    // Whatever ends a connection, ends it alone: the peer is told by the closed socket.
    let _ = read_requests(reader, answers, handler.clone(), limit).await;
    handler.client_gone();
}

/// What the writer sends: the opening, or a body.
enum Outgoing {
    Opening,
    Body(Vec<u8>),
}

async fn write_answers(mut writer: OwnedWriteHalf, mut waiting: mpsc::Receiver<Outgoing>) {
    while let Some(outgoing) = waiting.recv().await {
        let written = match outgoing {
            Outgoing::Opening => writer.write_all(&sp::handshake(sp::REPLY)).await,
            Outgoing::Body(body) => {
                let prefix = writer.write_all(&sp::prefix(body.len())).await;
                match fault!("server.send", io::Error::other("injected"), prefix) {
                    Ok(()) => writer.write_all(&body).await,
                    failed => failed,
                }
            }
        };
        if written.is_err() {
            return;
        }
    }
}

#[derive(Debug, Error)]
enum ConnectionEnd {
    #[error(transparent)]
    Io(#[from] io::Error),
    #[error(transparent)]
    Protocol(#[from] ProtocolError),
    #[error("the client is gone")]
    Gone,
}

async fn read_requests<H: Handler>(
    mut reader: OwnedReadHalf,
    answers: mpsc::Sender<Outgoing>,
    handler: Arc<H>,
    limit: u64,
) -> Result<(), ConnectionEnd> {
    let gone = |_| ConnectionEnd::Gone;
    answers.send(Outgoing::Opening).await.map_err(gone)?;
    let mut opening = [0; sp::HANDSHAKE_BYTES];
    reader.read_exact(&mut opening).await?;
    sp::check_handshake(opening, sp::REQUEST)?;
    let known = KnownRequests::default();
    let room = Arc::new(Semaphore::new(MOST_REQUESTS));
    loop {
        let place = room.clone().acquire_owned().await.map_err(|_| ConnectionEnd::Gone)?;
        let mut prefix = [0; sp::PREFIX_BYTES];
        reader.read_exact(&mut prefix).await?;
        let length = sp::body_length(prefix)?;
        if length > limit {
            return refuse(reader, &answers, handler.as_ref(), length, limit).await;
        }
        let body = read_body(&mut reader, length as usize).await?;
        let stack = sp::stack_length(&body)?;
        let Some(answering) = known.begin(&body, stack) else { continue };
        let (handler, answers) = (handler.clone(), answers.clone());
        tokio::spawn(async move {
            let mut reply = answering.id().to_vec();
            let (answers_it, message) = (handler.clone(), Message { body, stack });
            // A task of its own: a client must not wait for an answer that broke off.
            let answer = tokio::spawn(async move { answers_it.answer(message).await }).await;
            reply.extend(answer.unwrap_or_else(|_| handler.broke_off()));
            // A client that is gone does not miss its answer.
            let _ = answers.send(Outgoing::Body(reply)).await;
            drop((answering, place));
        });
    }
}

/// Reads a body in steps, so that a length that was only claimed takes no memory.
async fn read_body(reader: &mut OwnedReadHalf, length: usize) -> Result<Vec<u8>, ConnectionEnd> {
    let mut body = Vec::new();
    let mut part = reader.take(length as u64);
    part.read_to_end(&mut body).await?;
    if body.len() < length { Err(ConnectionEnd::Gone) } else { Ok(body) }
}

/// Answers a request that is too long by its id alone, then ends the connection.
async fn refuse<H: Handler>(
    mut reader: OwnedReadHalf,
    answers: &mpsc::Sender<Outgoing>,
    handler: &H,
    length: u64,
    limit: u64,
) -> Result<(), ConnectionEnd> {
    let start = read_body(&mut reader, 4 * sp::MAX_STACK_WORDS).await?;
    let mut reply = start[..sp::stack_length(&start)?].to_vec();
    reply.extend(handler.too_large(length, limit));
    answers.send(Outgoing::Body(reply)).await.map_err(|_| ConnectionEnd::Gone)?;
    // The rest is read and forgotten: a client that still writes would never see the answer.
    let mut scratch = vec![0; 1 << 16];
    while reader.read(&mut scratch).await? > 0 {}
    Ok(())
}
