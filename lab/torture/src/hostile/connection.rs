//! What comes over a socket: the daemon's end of a connection, and the client's.

use std::io::{ErrorKind, Read, Write};
use std::net::Shutdown;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};
use std::time::Duration;

use gpuemu_daemon::{Handler, Message, Server};
use gpuemu_wire::{Connection, TransportError};
use tempfile::TempDir;

use super::Target;
use super::workplace::folder;

/// The target. The first byte says who reads.
pub const TARGET: Target = Target {
    name: "connection",
    run,
    words: &[
        "\0SP\0\0\x30\0\0",
        "\0SP\0\0\x31\0\0",
        "\u{1}\0\0\0\0\0\0\0\u{4}",
        "\u{1}\0\0\0\0\0\0\0\u{8}",
        "\u{1}\0\0\0\0\0\0\u{20}\u{8}",
    ],
    thousands: 150,
    thousands_short: 10,
};

/// Longest message that either side takes.
const LIMIT: u64 = 1 << 12;

/// When a peer that says nothing counts as hung.
const PATIENCE: Duration = Duration::from_secs(20);

fn run(bytes: &[u8]) {
    let Some((side, bytes)) = bytes.split_first() else { return };
    let Some(ends) = ENDS.as_ref() else { return };
    if side.is_multiple_of(2) { ends.daemon_reads(bytes) } else { ends.client_reads(bytes) }
}

/// A server of the daemon's kind, and a peer that answers clients with any bytes.
struct Ends {
    server: PathBuf,
    peer: PathBuf,
    /// What the peer answers with.
    answer: Arc<Mutex<Vec<u8>>>,
    _folder: TempDir,
}

static ENDS: LazyLock<Option<Ends>> = LazyLock::new(Ends::start);

impl Ends {
    fn start() -> Option<Self> {
        let folder = folder()?;
        let (server, peer) = (folder.path().join("server"), folder.path().join("peer"));
        let answer = Arc::<Mutex<Vec<u8>>>::default();
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().ok()?;
        let bound = runtime.block_on(async { Server::bind(&server, LIMIT) }).ok()?;
        std::thread::spawn(move || runtime.block_on(bound.serve(Arc::new(Echo))));
        let (listener, told) = (UnixListener::bind(&peer).ok()?, answer.clone());
        std::thread::spawn(move || {
            for mut stream in listener.incoming().flatten() {
                let bytes = told.lock().unwrap_or_else(PoisonError::into_inner).clone();
                // A client that has read enough is gone.
                let _ = stream.write_all(&bytes);
                let _ = stream.shutdown(Shutdown::Write);
                let _ = stream.read_to_end(&mut Vec::new());
            }
        });
        Some(Self { server, peer, answer, _folder: folder })
    }

    fn daemon_reads(&self, bytes: &[u8]) {
        let Ok(mut stream) = UnixStream::connect(&self.server) else { return };
        // A server that has read enough is gone.
        let _ = stream.write_all(bytes);
        let _ = stream.shutdown(Shutdown::Write);
        let _ = stream.set_read_timeout(Some(PATIENCE));
        let mut answers = Vec::new();
        let ended = stream.read_to_end(&mut answers);
        let hangs = ended.is_err_and(|error| matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut));
        assert!(!hangs, "the server does not let go of a client that has sent all");
        assert!(answers.len() <= 100 + 2 * bytes.len(), "{} bytes answer {}", answers.len(), bytes.len());
    }

    fn client_reads(&self, bytes: &[u8]) {
        *self.answer.lock().unwrap_or_else(PoisonError::into_inner) = bytes.to_vec();
        let Ok(mut connection) = Connection::open(&self.peer, LIMIT, PATIENCE) else { return };
        match connection.request(b"{}", PATIENCE) {
            Ok(answer) => assert!(answer.len() <= bytes.len()),
            Err(error) => assert!(!matches!(error, TransportError::TimedOut(_)), "the client hangs"),
        }
    }
}

/// Answers with what it was asked.
struct Echo;

impl Handler for Echo {
    async fn answer(&self, request: Message) -> Vec<u8> {
        request.payload().to_vec()
    }

    fn broke_off(&self) -> Vec<u8> {
        b"broke off".to_vec()
    }

    fn too_large(&self, _: u64, _: u64) -> Vec<u8> {
        b"too large".to_vec()
    }
}
