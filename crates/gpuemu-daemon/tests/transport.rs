//! The transport over real sockets, with clients that behave, clients that do not, and NNG itself.
#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stderr, reason = "tests fail by panicking")]

use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use gpuemu_daemon::{Handler, Message, Server, ServerError};
use gpuemu_wire::{Connection, TransportError, sp};
use tempfile::TempDir;

const LIMIT: u64 = 80 << 20;
const PATIENCE: Duration = Duration::from_secs(20);

/// Answers with what it was asked; `wait` waits first.
#[derive(Default)]
struct Echo {
    runs: AtomicUsize,
}

impl Handler for Echo {
    async fn answer(&self, request: Message) -> Vec<u8> {
        let request = request.payload().to_vec();
        self.runs.fetch_add(1, Ordering::SeqCst);
        assert!(request != b"panic", "as asked");
        if request.starts_with(b"wait") {
            tokio::time::sleep(Duration::from_millis(1500)).await;
        }
        request
    }

    fn broke_off(&self) -> Vec<u8> {
        b"broke off".to_vec()
    }

    fn too_large(&self, length: u64, limit: u64) -> Vec<u8> {
        format!("{length} is more than {limit}").into_bytes()
    }
}

/// A server on a thread of its own, until dropped.
struct Running {
    folder: TempDir,
    echo: Arc<Echo>,
    _runtime: tokio::runtime::Runtime,
}

impl Running {
    fn socket(&self) -> PathBuf {
        self.folder.path().join("gpuemu.sock")
    }

    fn connect(&self) -> Connection {
        Connection::open(&self.socket(), LIMIT, PATIENCE).unwrap()
    }

    fn raw(&self) -> UnixStream {
        let mut stream = UnixStream::connect(self.socket()).unwrap();
        stream.write_all(&sp::handshake(sp::REQUEST)).unwrap();
        let mut opening = [0; sp::HANDSHAKE_BYTES];
        stream.read_exact(&mut opening).unwrap();
        assert_eq!(opening, sp::handshake(sp::REPLY));
        stream
    }
}

fn start() -> Running {
    let folder = TempDir::new().unwrap();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let echo = Arc::new(Echo::default());
    let server = runtime.block_on(async { Server::bind(&folder.path().join("gpuemu.sock"), LIMIT) }).unwrap();
    let handler = echo.clone();
    runtime.spawn(async move { server.serve(handler).await });
    Running { folder, echo, _runtime: runtime }
}

fn send(stream: &mut UnixStream, id: u32, payload: &[u8]) {
    stream.write_all(&sp::prefix(4 + payload.len())).unwrap();
    stream.write_all(&sp::request_id(id)).unwrap();
    stream.write_all(payload).unwrap();
}

fn receive(stream: &mut UnixStream) -> Vec<u8> {
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut prefix = [0; sp::PREFIX_BYTES];
    stream.read_exact(&mut prefix).unwrap();
    let mut body = vec![0; sp::body_length(prefix).unwrap() as usize];
    stream.read_exact(&mut body).unwrap();
    body
}

#[test]
fn an_answer_comes_back_whatever_its_size() {
    let server = start();
    let mut connection = server.connect();
    for size in [0, 1, 1000, 5 << 20] {
        let payload: Vec<u8> = (0..size).map(|index| index as u8).collect();
        assert_eq!(connection.request(&payload, PATIENCE).unwrap(), payload);
    }
}

#[test]
fn a_slow_request_delays_no_other() {
    let server = start();
    let mut raw = server.raw();
    // On one connection: the quick one is answered first.
    send(&mut raw, 1, b"wait");
    send(&mut raw, 2, b"quick");
    assert_eq!(receive(&mut raw)[4..], *b"quick");
    // On another connection: at once.
    assert_eq!(server.connect().request(b"ping", PATIENCE).unwrap(), b"ping");
    // Both came while the slow one was still at it.
    raw.set_nonblocking(true).unwrap();
    let early = raw.read(&mut [0]).map_err(|error| error.kind());
    assert_eq!(early, Err(std::io::ErrorKind::WouldBlock));
    raw.set_nonblocking(false).unwrap();
    assert_eq!(receive(&mut raw)[4..], *b"wait");
}

#[test]
fn a_request_that_is_sent_again_is_run_once() {
    let server = start();
    let mut raw = server.raw();
    send(&mut raw, 7, b"wait for it");
    send(&mut raw, 7, b"wait for it");
    assert_eq!(receive(&mut raw)[4..], *b"wait for it");
    assert_eq!(server.echo.runs.load(Ordering::SeqCst), 1);
    // It may cross the answer.
    send(&mut raw, 7, b"wait for it");
    // Once answered, the id may be used anew.
    send(&mut raw, 7, b"again");
    assert_eq!(receive(&mut raw)[4..], *b"again");
    assert_eq!(server.echo.runs.load(Ordering::SeqCst), 2);
}

#[test]
fn a_handler_that_panics_harms_no_other_request() {
    let server = start();
    let mut raw = server.raw();
    send(&mut raw, 5, b"panic");
    // Whoever asked does not wait for an answer that never comes.
    assert_eq!(receive(&mut raw)[4..], *b"broke off");
    send(&mut raw, 6, b"fine");
    assert_eq!(receive(&mut raw)[4..], *b"fine");
    // The id becomes free just after its answer is on its way: until then what is sent under it counts as the same
    // request. NNG resends, and so does this.
    raw.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
    let answered = (0..200).any(|_| {
        send(&mut raw, 5, b"second try");
        raw.read_exact(&mut [0]).is_ok()
    });
    assert!(answered);
}

#[test]
fn words_of_proxies_come_back_with_the_answer() {
    let server = start();
    let mut raw = server.raw();
    let stack = [&[0, 0, 0, 5][..], &[0, 0, 1, 0], &sp::request_id(9)].concat();
    raw.write_all(&sp::prefix(stack.len() + 2)).unwrap();
    raw.write_all(&stack).unwrap();
    raw.write_all(b"hi").unwrap();
    assert_eq!(receive(&mut raw), [stack, b"hi".to_vec()].concat());
}

#[test]
fn a_message_beyond_the_limit_is_refused_by_its_id_and_takes_no_memory() {
    let server = start();
    let mut raw = server.raw();
    raw.write_all(&sp::prefix(usize::MAX)).unwrap();
    raw.write_all(&sp::request_id(3)).unwrap();
    raw.write_all(&[0; 64]).unwrap();
    let answer = receive(&mut raw);
    assert_eq!(answer[..4], sp::request_id(3));
    assert!(String::from_utf8_lossy(&answer[4..]).contains(&format!("more than {LIMIT}")));
}

#[test]
fn nonsense_ends_its_own_connection_only() {
    let server = start();
    let mut held = server.connect();
    for nonsense in [&b"GET / HTTP/1.1\r\n\r\n"[..], &[0xff; 64], b"", &sp::handshake(sp::REPLY)] {
        let mut stream = UnixStream::connect(server.socket()).unwrap();
        stream.write_all(nonsense).unwrap();
        drop(stream);
    }
    for body in [&b"\x02"[..], b"\x01\0\0\0\0\0\0\0\x03abc", b"\x01\0\0\0\0\0\0\0\0"] {
        let mut raw = server.raw();
        // In one piece: the server closes as soon as it has seen enough, and may do so in between.
        raw.write_all(&[body, &[0; 16]].concat()).unwrap();
        let mut rest = Vec::new();
        raw.set_read_timeout(Some(PATIENCE)).unwrap();
        let _ = raw.read_to_end(&mut rest);
        assert!(rest.is_empty(), "{rest:?}");
    }
    assert_eq!(held.request(b"still there", PATIENCE).unwrap(), b"still there");
}

#[test]
fn the_socket_belongs_to_one_server_and_one_user() {
    let server = start();
    let mode = std::fs::metadata(server.socket()).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let bind = |path: &Path| runtime.block_on(async { Server::bind(path, LIMIT) });
    assert!(matches!(bind(&server.socket()), Err(ServerError::InUse(_))));
    // A file of somebody's is left alone; a socket that nobody listens on is replaced.
    let file = server.folder.path().join("notes.txt");
    std::fs::write(&file, "mine").unwrap();
    assert!(matches!(bind(&file), Err(ServerError::NotASocket(_))));
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "mine");
    let stale = server.folder.path().join("stale.sock");
    drop(std::os::unix::net::UnixListener::bind(&stale).unwrap());
    assert!(bind(&stale).is_ok());
}

#[test]
fn a_client_says_what_is_wrong() {
    let folder = TempDir::new().unwrap();
    let nobody = Connection::open(&folder.path().join("none.sock"), LIMIT, PATIENCE);
    assert!(matches!(nobody, Err(TransportError::Connect { .. })));
    let server = start();
    let late = server.connect().request(b"wait", Duration::from_millis(50));
    assert!(matches!(late, Err(TransportError::TimedOut(_))), "{late:?}");
    let mut small = Connection::open(&server.socket(), 100, PATIENCE).unwrap();
    assert!(matches!(small.request(&[0; 1000], PATIENCE), Err(TransportError::TooLarge { limit: 100, .. })));
}

/// The Python with `pynng`: `cargo xtask test` names it. In CI it must be there.
fn python() -> Option<PathBuf> {
    let python = std::env::var_os("GPUEMU_TEST_PYTHON").map(PathBuf::from);
    let in_ci = std::env::var_os("CI").is_some_and(|value| value == "true");
    assert!(python.is_some() || !in_ci, "GPUEMU_TEST_PYTHON is not set; run the tests by `cargo xtask test`");
    python
}

#[test]
fn nng_itself_talks_to_the_server() {
    let Some(python) = python() else {
        eprintln!("skipped: GPUEMU_TEST_PYTHON is not set; `cargo xtask test` sets it");
        return;
    };
    let server = start();
    let program = r#"
import sys
import threading
import pynng

address = "ipc://" + sys.argv[1]
with pynng.Req0(dial=address, recv_timeout=20000, send_timeout=20000) as request:
    request.recv_max_size = 0
    # Not an empty one: pynng cannot unpack it.
    for payload in (b"ping", bytes(range(256)) * 1000, b"x" * (64 << 20)):
        request.send(payload)
        assert request.recv() == payload, len(payload)

# Many contexts of one socket, and many sockets, at once.
def ask(number):
    with pynng.Req0(dial=address, recv_timeout=20000) as request:
        for step in range(50):
            payload = f"{number}/{step}".encode()
            request.send(payload)
            assert request.recv() == payload

threads = [threading.Thread(target=ask, args=(number,)) for number in range(8)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()

# A request that NNG sends again because the answer takes long is still run once.
with pynng.Req0(dial=address, recv_timeout=20000, resend_time=100) as request:
    request.send(b"wait resent")
    assert request.recv() == b"wait resent"
print("done")
"#;
    let before = server.echo.runs.load(Ordering::SeqCst);
    let output = Command::new(python).args(["-c", program]).arg(server.socket()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(output.stdout, b"done\n");
    assert_eq!(server.echo.runs.load(Ordering::SeqCst) - before, 3 + 8 * 50 + 1);
}
