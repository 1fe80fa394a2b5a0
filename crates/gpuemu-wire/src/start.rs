//! Connecting to the daemon, which is started where none listens.

use std::io;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use thiserror::Error;

use crate::client::{Client, ClientError};
use crate::connection::TransportError;

/// How long the daemon before may take to let go of the folder once it no longer answers.
const HANDOVER_TIME: Duration = Duration::from_secs(3);

/// The exit status of a daemon that is started in the background and finds its folder in use.
pub const IN_USE: u8 = 75;

/// Why there is no connection.
#[derive(Debug, Error)]
pub enum StartError {
    /// Somebody listens, but does not answer as a daemon of this version does.
    #[error(transparent)]
    Client(#[from] ClientError),
    /// The program cannot be run.
    #[error("the daemon cannot be started: {0}")]
    Spawn(io::Error),
    /// The program ended at once.
    #[error("the daemon cannot be started: {words}")]
    Ended { words: String },
    /// The program runs, but does not listen.
    #[error("the daemon did not start within {} s", .0.as_secs_f64())]
    TooSlow(Duration),
}

/// A connection, and whether a daemon was started for it.
#[derive(Debug)]
pub struct Connected {
    pub client: Client,
    /// The process of the daemon that was started; `None` where one listened already.
    pub started: Option<u32>,
}

/// Connects to the daemon, if one listens. `timeout` holds for each request.
pub fn connect(socket: &Path, timeout: Duration) -> Result<Option<Client>, ClientError> {
    match Client::connect(socket, timeout) {
        Ok(client) => Ok(Some(client)),
        Err(ClientError::Transport(TransportError::Connect { source, .. })) if nobody_listens(&source) => Ok(None),
        Err(error) => Err(error),
    }
}

fn nobody_listens(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused)
}

/// Connects to the daemon, which is started by a command if none listens and has `limit` to do so.
///
/// `command` is asked each time that a daemon is to be started: one that the daemon before kept from its
/// folder is started again.
pub fn connect_or_start(
    socket: &Path,
    timeout: Duration,
    limit: Duration,
    mut command: impl FnMut() -> io::Result<Command>,
) -> Result<Connected, StartError> {
    if let Some(client) = connect(socket, timeout)? {
        return Ok(Connected { client, started: None });
    }
    let mut child = spawn(&mut command)?;
    let started = Instant::now();
    loop {
        if let Some(client) = connect(socket, timeout)? {
            return Ok(Connected { client, started: Some(let_go(child)) });
        }
        if let Ok(Some(status)) = child.try_wait() {
            // Another daemon may have been faster.
            if let Some(client) = connect(socket, timeout)? {
                return Ok(Connected { client, started: None });
            }
            if status.code() == Some(i32::from(IN_USE)) && started.elapsed() < HANDOVER_TIME {
                std::thread::sleep(Duration::from_millis(100));
                child = spawn(&mut command)?;
                continue;
            }
            return Err(StartError::Ended { words: last_words(&mut child, status) });
        }
        if started.elapsed() >= limit {
            let _ = child.kill();
            let _ = child.wait();
            return Err(StartError::TooSlow(limit));
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Starts the daemon in the background, in a process group of its own: an interrupt of this process is not its.
fn spawn(command: &mut impl FnMut() -> io::Result<Command>) -> Result<Child, StartError> {
    use std::os::unix::process::CommandExt;
    let mut command = command().map_err(StartError::Spawn)?;
    // Whoever starts it may be a script of another daemon, which would take it for a process that got away.
    command.current_dir("/").process_group(0).env_remove("GPUEMU_GROUP");
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    command.spawn().map_err(|error| {
        let program = command.get_program().display();
        StartError::Spawn(io::Error::new(error.kind(), format!("{program}: {error}")))
    })
}

/// Leaves a daemon to itself and returns its process. When it ends before this process does, it is waited
/// for: a process that nobody waits for stays in the system's table.
fn let_go(mut child: Child) -> u32 {
    let process = child.id();
    drop(child.stderr.take());
    // Without a thread it stays in the table until this process ends, which does no harm.
    let _ = std::thread::Builder::new().name("gpuemu-daemon-end".to_string()).spawn(move || child.wait());
    process
}

/// What a daemon that ended at once had to say.
fn last_words(child: &mut Child, status: ExitStatus) -> String {
    let mut words = String::new();
    if let Some(stderr) = child.stderr.as_mut() {
        let _ = io::Read::read_to_string(stderr, &mut words);
    }
    let words = words.trim().trim_start_matches("error: ").to_string();
    if words.is_empty() { format!("it ended at once ({status})") } else { words }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn start(program: &str, arguments: &[&str], limit: Duration) -> (Result<Connected, StartError>, usize) {
        let folder = tempfile::tempdir().unwrap();
        let mut started = 0;
        let result = connect_or_start(&folder.path().join("no.sock"), Duration::from_secs(1), limit, || {
            started += 1;
            let mut command = Command::new(program);
            command.args(arguments);
            Ok(command)
        });
        (result, started)
    }

    #[test]
    fn a_program_that_is_not_there_or_ends_or_never_listens_is_an_error_that_says_so() {
        let (missing, _) = start("/no/such/daemon", &[], Duration::from_secs(5));
        assert!(matches!(missing, Err(StartError::Spawn(_))), "{missing:?}");
        let (ended, started) = start("sh", &["-c", "echo error: no room >&2; exit 2"], Duration::from_secs(5));
        assert_eq!(ended.unwrap_err().to_string(), "the daemon cannot be started: no room");
        assert_eq!(started, 1);
        let (silent, _) = start("sh", &["-c", "exit 3"], Duration::from_secs(5));
        assert!(silent.unwrap_err().to_string().contains("ended at once (exit status: 3)"));
        let (slow, _) = start("sleep", &["60"], Duration::from_millis(50));
        assert_eq!(slow.unwrap_err().to_string(), "the daemon did not start within 0.05 s");
    }

    #[test]
    fn a_daemon_that_is_kept_from_its_folder_is_started_again_for_a_while() {
        let (ended, started) = start("sh", &["-c", "echo the folder is in use by X >&2; exit 75"], HANDOVER_TIME * 2);
        assert!(ended.unwrap_err().to_string().contains("is in use by X"));
        assert!(started > 1, "{started}");
    }

    #[test]
    fn nobody_listening_is_no_error_and_anything_else_is() {
        let folder = tempfile::tempdir().unwrap();
        assert!(connect(&folder.path().join("no.sock"), Duration::from_secs(1)).unwrap().is_none());
        let file = folder.path().join("file.sock");
        std::fs::write(&file, "").unwrap();
        // A file that is no socket refuses as a socket without a daemon does.
        assert!(connect(&file, Duration::from_secs(1)).unwrap().is_none());
        assert!(connect(&file.join("below"), Duration::from_secs(1)).is_err());
    }
}
