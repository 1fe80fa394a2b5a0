//! Who may connect, and what others may see: nobody else, and nothing.

use std::fs::{self, Permissions};
use std::io::{Read, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use gpuemu_model::settings::ProjectReference;
use gpuemu_wire::protocol::{ListResults, Request};
use gpuemu_wire::shared_memory::Segment;
use gpuemu_wire::{Connection, TransportError, sp};

use crate::daemon_process::{DaemonProcess, NOBODY, PATIENCE, at_home, copied, listens, program, unprivileged};
use crate::trial::{Ended, Extent, Trial};

pub const TRIAL: Trial =
    Trial { name: "connect", about: "other users, links and files in the way, modes under any umask", run };

fn run(_extent: &Extent) -> Ended {
    if !rustix::process::geteuid().is_root() {
        return Ended::Impossible("only root can become another user".to_string());
    }
    let parts: [fn() -> Result<String, String>; 5] = [strangers, obstacles, modes, shared_memory, paths];
    parts.into_iter().map(|part| part()).collect::<Result<Vec<String>, String>>().into()
}

/// Somebody who has no business with a daemon: prints how far it came. It is no client of gpuemu's own, which would
/// not even talk to the socket of somebody else.
pub fn stranger(socket: &Path) -> ExitCode {
    let ping = br#"{"type":"Ping"}"#;
    let message = [&sp::handshake(sp::REQUEST)[..], &sp::prefix(4 + ping.len()), &sp::request_id(1), ping].concat();
    match UnixStream::connect(socket) {
        Err(error) => println!("no connection: {error}"),
        Ok(mut stream) => {
            let mut answer = vec![0; sp::HANDSHAKE_BYTES + sp::PREFIX_BYTES + 8];
            let read = stream.write_all(&message).and_then(|()| stream.read_exact(&mut answer));
            println!("{}", read.map_or_else(|error| format!("not let in: {error}"), |()| "answered".to_string()));
        }
    }
    ExitCode::SUCCESS
}

/// A client that holds shared memory until it is killed.
pub fn holder() -> ExitCode {
    let made = Segment::create().and_then(|mut segment| Ok((segment.push(&[7; 4096])?, segment)));
    match made {
        Ok((place, _segment)) => {
            println!("{}", place.name);
            std::thread::sleep(PATIENCE);
            ExitCode::SUCCESS
        }
        Err(_) => ExitCode::FAILURE,
    }
}

/// Another user, with every permission on the way given away, and a root that looks at a user's daemon.
fn strangers() -> Result<String, String> {
    let daemon = DaemonProcess::start()?;
    let (folder, home) = (daemon.folder.path(), daemon.folder.path().join("home"));
    let own = ask_as_stranger(&daemon.socket(), &program("gpuemu-torture")?, false)?;
    if !own.starts_with("answered") {
        return Err(format!("the user's own client: {own}"));
    }
    let copy = copied(folder, "gpuemu-torture")?;
    for path in [folder, &home, &daemon.socket()] {
        mode(path, 0o777)?;
    }
    let other = ask_as_stranger(&daemon.socket(), &copy, true)?;
    if !other.starts_with("not let in") {
        return Err(format!("another user: {other}"));
    }
    daemon.client().map_err(|error| format!("after a stranger: {error}"))?;
    // The client's side: what somebody else put where the daemon should be is not talked to.
    rustix::fs::chown(daemon.socket(), Some(rustix::fs::Uid::from_raw(NOBODY)), None)
        .map_err(|error| error.to_string())?;
    match Connection::open(&daemon.socket(), 1 << 20, PATIENCE) {
        Err(TransportError::Foreign { problem, .. }) if problem.contains(&NOBODY.to_string()) => {}
        Err(error) => return Err(format!("a foreign socket: {error}")),
        Ok(_) => return Err("a foreign socket is talked to".to_string()),
    }
    Ok("another user is refused on both sides".to_string())
}

fn ask_as_stranger(socket: &Path, program: &Path, other_user: bool) -> Result<String, String> {
    let mut command = Command::new(program);
    command.arg("--stranger").arg(socket);
    if other_user {
        unprivileged(&mut command);
    }
    let output = command.output().map_err(|error| format!("{}: {error}", program.display()))?;
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_string())
}

/// What may lie at the socket's place: it is left alone, and the daemon says so.
fn obstacles() -> Result<String, String> {
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let home = folder.path().join("home");
    fs::create_dir_all(&home).map_err(|error| error.to_string())?;
    let (socket, target) = (home.join("gpuemu.sock"), folder.path().join("target"));
    fs::write(&target, "somebody's").map_err(|error| error.to_string())?;
    type Obstacle<'a> = (&'a str, Box<dyn Fn() -> std::io::Result<()> + 'a>);
    let obstacles: [Obstacle<'_>; 4] = [
        ("a link to a file", Box::new(|| symlink(&target, &socket))),
        ("a link to nothing", Box::new(|| symlink(folder.path().join("nothing"), &socket))),
        ("a file", Box::new(|| fs::write(&socket, "somebody's"))),
        ("a folder", Box::new(|| fs::create_dir(&socket))),
    ];
    for (what, place) in &obstacles {
        place().map_err(|error| error.to_string())?;
        let before = fs::symlink_metadata(&socket).map_err(|error| error.to_string())?;
        let mut daemon = Command::new(program("gpuemu-daemon")?);
        let output = at_home(&mut daemon, folder.path()).stderr(Stdio::piped()).output();
        let output = output.map_err(|error| error.to_string())?;
        let words = String::from_utf8_lossy(&output.stderr).into_owned();
        if output.status.code() != Some(2) || !words.contains("is not a socket; it is left alone") {
            return Err(format!("{what}: the daemon ended with {} and {words}", output.status));
        }
        let after = fs::symlink_metadata(&socket).map_err(|error| format!("{what} is gone: {error}"))?;
        if (before.ino(), before.mode(), before.len()) != (after.ino(), after.mode(), after.len()) {
            return Err(format!("{what} was changed"));
        }
        // The client neither follows it nor hangs.
        let mut status = Command::new(program("gpuemu")?);
        let output = at_home(&mut status, folder.path()).args(["daemon", "start", "--background"]).output();
        let code = output.map_err(|error| error.to_string())?.status.code();
        if code != Some(2) {
            return Err(format!("{what}: `gpuemu daemon start` ended with {code:?}"));
        }
        let _ = fs::remove_file(&socket).or_else(|_| fs::remove_dir(&socket));
    }
    if fs::read_to_string(&target).ok().as_deref() != Some("somebody's") {
        return Err("the file behind a link was changed".to_string());
    }
    Ok(format!("{} obstacles at the socket's place are left alone", obstacles.len()))
}

/// What is only its owner's, whatever the umask says.
fn modes() -> Result<String, String> {
    let umasks = ["0000", "0022", "0077", "0777"];
    let mut looked_at = 0;
    for umask in umasks {
        let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
        mode(folder.path(), 0o777)?;
        let mut shell = Command::new("sh");
        shell
            .args(["-c", "umask $0; exec \"$@\"", umask])
            .arg(copied(folder.path(), "gpuemu-daemon")?)
            .arg("--detached");
        // A home whose folders on the way are not there either.
        let home = folder.path().join("deep/home");
        let started = unprivileged(at_home(&mut shell, folder.path()).env("GPUEMU_HOME", &home)).spawn();
        let mut daemon = started.map_err(|error| error.to_string())?;
        let found = listens(&home.join("gpuemu.sock")).and_then(|()| entries(&home));
        let _ = daemon.kill();
        let _ = daemon.wait();
        for (path, found) in found.map_err(|problem| format!("umask {umask}: {problem}"))? {
            if found & 0o077 != 0 || found & 0o600 != 0o600 {
                return Err(format!("umask {umask}: {path} has mode {found:o}"));
            }
            looked_at += 1;
        }
        let mut shell = Command::new("sh");
        shell.args(["-c", "umask $0; exec \"$@\"", umask]).arg(program("gpuemu-torture")?).arg("--holder");
        let (name, mut holder) = held(&mut shell)?;
        let found = fs::metadata(Path::new("/dev/shm").join(&name)).map(|metadata| metadata.mode() & 0o777);
        let _ = holder.kill();
        let _ = holder.wait();
        if found.as_ref().ok() != Some(&0o600) {
            return Err(format!("umask {umask}: shared memory has mode {found:?}"));
        }
        looked_at += 1;
    }
    Ok(format!("{looked_at} files, folders and segments are their owner's under {} umasks", umasks.len()))
}

/// Everything in a folder with its mode, the folder included.
fn entries(folder: &Path) -> Result<Vec<(String, u32)>, String> {
    let failed = |error: std::io::Error| format!("{}: {error}", folder.display());
    let mut found =
        vec![(folder.display().to_string(), fs::metadata(folder).map_err(failed)?.permissions().mode() & 0o777)];
    for entry in fs::read_dir(folder).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let metadata = entry.metadata().map_err(failed)?;
        if metadata.is_dir() {
            found.extend(entries(&entry.path())?);
        } else {
            found.push((entry.path().display().to_string(), metadata.permissions().mode() & 0o777));
        }
    }
    Ok(found)
}

/// A client that is killed leaves no shared memory behind: the daemon removes it, without another client's help.
fn shared_memory() -> Result<String, String> {
    let daemon = DaemonProcess::start()?;
    let client = daemon.client()?;
    let mut names = Vec::new();
    let mut killed = Vec::new();
    for _ in 0..10 {
        let (name, holder) = held(Command::new(program("gpuemu-torture")?).arg("--holder"))?;
        names.push(name);
        killed.push(holder);
    }
    let left = |names: &[String]| names.iter().filter(|name| Path::new("/dev/shm").join(name).exists()).count();
    // The first clients' own cleaning must not be what is measured: nobody makes a segment from here on.
    if left(&names) != names.len() {
        return Err(format!("{} of {} segments of living clients are gone", names.len() - left(&names), names.len()));
    }
    for mut holder in killed {
        let _ = holder.kill();
        let _ = holder.wait();
    }
    drop(client);
    let start = Instant::now();
    while left(&names) > 0 {
        if start.elapsed() > Duration::from_secs(10) {
            return Err(format!("{} of {} segments outlive their clients", left(&names), names.len()));
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    Ok(format!("{} segments of killed clients are removed", names.len()))
}

fn held(command: &mut Command) -> Result<(String, std::process::Child), String> {
    use std::io::BufRead;
    let mut holder = command.stdout(Stdio::piped()).spawn().map_err(|error| error.to_string())?;
    let mut name = String::new();
    let output = holder.stdout.take().ok_or("the client has no output")?;
    std::io::BufReader::new(output).read_line(&mut name).map_err(|error| error.to_string())?;
    match name.trim() {
        "" => Err("a client could not make shared memory".to_string()),
        name => Ok((name.to_string(), holder)),
    }
}

/// Paths of messages: a configuration outside its project is not opened.
fn paths() -> Result<String, String> {
    let daemon = DaemonProcess::start()?;
    let secret = daemon.folder.path().join("secret.toml");
    fs::write(&secret, "secret-of-the-user = 1\n").map_err(|error| error.to_string())?;
    let project = daemon.project("project", &[])?;
    symlink(daemon.folder.path(), project.root.join("out")).map_err(|error| error.to_string())?;
    let hostile = ["../secret.toml", "out/secret.toml", "./../project/../secret.toml", "/etc/passwd", "..", "/"];
    let named = hostile.map(|path| Path::new(path).to_path_buf());
    for config in named.iter().chain([&secret]) {
        let project = ProjectReference { config: Some(config.clone()), ..project.clone() };
        let request = ListResults { project, op_name: None, limit: None, since_hours: None };
        let error = match daemon.client()?.call(&Request::ListResults(request)) {
            Ok(_) => return Err(format!("{} was opened", config.display())),
            Err(error) => error.to_string(),
        };
        if !error.contains("outside the project") || error.contains("secret-of-the-user") || error.contains("root:") {
            return Err(format!("{}: {error}", config.display()));
        }
    }
    Ok(format!("{} paths out of a project are refused", named.len() + 1))
}

fn mode(path: &Path, mode: u32) -> Result<(), String> {
    fs::set_permissions(path, Permissions::from_mode(mode)).map_err(|error| format!("{}: {error}", path.display()))
}
