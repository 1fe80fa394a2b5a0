//! Threads that work stand back behind those that only answer; the processes that they start do not.
//!
//! Without rights a thread can lower its priority but never raise it again, and a process has that of the thread which
//! starts it. So where threads stand back, one that does not starts the processes of all.

use std::io;
use std::process::{Child, Command};
use std::sync::OnceLock;
use std::sync::mpsc::{Receiver, SyncSender, channel, sync_channel};

/// A process to be started, and where to return it with its command.
type Order = (Command, SyncSender<(Command, io::Result<Child>)>);

static STARTER: OnceLock<std::sync::mpsc::Sender<Order>> = OnceLock::new();

/// How far a thread that works stands back.
#[cfg(target_os = "linux")]
const NICE: i32 = 10;

/// Lets a thread of the present priority start every process from now on, so that others may [`stand_back`].
pub fn start_processes_apart() -> io::Result<()> {
    let (sender, orders) = channel();
    std::thread::Builder::new().name("gpuemu-starter".to_string()).spawn(move || start_all(&orders))?;
    // Whoever came before has such a thread.
    let _ = STARTER.set(sender);
    Ok(())
}

fn start_all(orders: &Receiver<Order>) {
    while let Ok((mut command, answer)) = orders.recv() {
        let child = command.spawn();
        // Whoever ordered it waits.
        let _ = answer.send((command, child));
    }
}

/// Lets the present thread, and those that it starts, wait for the processor until no thread that answers wants it.
/// Does nothing where processes are started by the threads that want them, and where only a whole process can do it.
pub fn stand_back() {
    #[cfg(target_os = "linux")]
    {
        thread_local!(static STANDS_BACK: std::cell::Cell<bool> = const { std::cell::Cell::new(false) });
        if STARTER.get().is_some() && !STANDS_BACK.replace(true) {
            // It is as right without, only later for others.
            let _ = rustix::process::nice(NICE);
        }
    }
}

/// Starts a process, with the priority of processes.
pub(crate) fn spawn(command: &mut Command) -> io::Result<Child> {
    let Some(starter) = STARTER.get() else { return command.spawn() };
    let gone = || io::Error::other("the thread that starts processes is gone");
    let (sender, answer) = sync_channel(1);
    let order = std::mem::replace(command, Command::new(""));
    starter.send((order, sender)).map_err(|_| gone())?;
    let (order, child) = answer.recv().map_err(|_| gone())?;
    *command = order;
    child
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a helper of tests")]

    use super::*;

    fn nice_of(status: &str) -> i32 {
        // The 19th field, counted behind the name in parentheses, which is the second.
        status.rsplit(')').next().unwrap().split_whitespace().nth(16).unwrap().parse().unwrap()
    }

    #[test]
    fn a_thread_stands_back_and_what_it_starts_does_not() {
        start_processes_apart().unwrap();
        let before = nice_of(&std::fs::read_to_string("/proc/thread-self/stat").unwrap());
        let (thread, child) = std::thread::spawn(|| {
            stand_back();
            stand_back();
            let thread = nice_of(&std::fs::read_to_string("/proc/thread-self/stat").unwrap());
            let mut command = Command::new("cat");
            command.arg("/proc/self/stat").stdout(std::process::Stdio::piped());
            let child = spawn(&mut command).unwrap().wait_with_output().unwrap();
            assert_eq!(command.get_program(), "cat", "the command is the caller's again");
            (thread, nice_of(&String::from_utf8(child.stdout).unwrap()))
        })
        .join()
        .unwrap();
        assert_eq!(thread, (before + NICE).min(19));
        assert_eq!(child, before);
        assert_eq!(nice_of(&std::fs::read_to_string("/proc/thread-self/stat").unwrap()), before, "others do not");
    }

    #[test]
    fn a_program_that_there_is_not_is_the_error_of_whoever_wants_it() {
        start_processes_apart().unwrap();
        assert_eq!(spawn(&mut Command::new("/no/such/program")).unwrap_err().kind(), io::ErrorKind::NotFound);
    }
}
