//! A process and everything it starts: one group, ended as a whole.
//!
//! Scripts of a project and NVIDIA's tools are run by different crates with different needs. What none of them may do is
//! leave something running behind, so that is here once.

mod arenas;
mod escaped;
pub mod fault;
pub mod instruction_cap;
mod standing_back;

use std::collections::BTreeSet;
use std::io;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};

/// How long the pipes of a process that has exited are waited for: a child of it may keep them open for ever.
pub const GRACE: Duration = Duration::from_millis(200);

pub use arenas::{return_memory, share_arenas};
pub use escaped::adopt_orphans;
pub use standing_back::{stand_back, start_processes_apart};

/// The first processes of groups, by number.
struct Leaders {
    live: BTreeSet<i32>,
    /// Those that were killed and are being waited for.
    ending: BTreeSet<i32>,
}

impl Leaders {
    /// Whether somebody waits for a process.
    fn has(&self, process: i32) -> bool {
        self.live.contains(&process) || self.ending.contains(&process)
    }
}

static LEADERS: Mutex<Leaders> = Mutex::new(Leaders { live: BTreeSet::new(), ending: BTreeSet::new() });

fn leaders() -> MutexGuard<'static, Leaders> {
    LEADERS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Set once everything is being ended.
static ENDING: AtomicBool = AtomicBool::new(false);

/// Whether everything is being ended: what a program did from then on says nothing about it.
pub fn is_ending() -> bool {
    ENDING.load(Ordering::Relaxed)
}

/// Kills every group that runs, for a process that is about to end: a script that hangs would outlive it.
pub fn end_all() {
    ENDING.store(true, Ordering::Relaxed);
    for group in leaders().live.iter().filter_map(|number| Pid::from_raw(*number)) {
        // One that has just ended needs no killing.
        let _ = kill_process_group(group, Signal::KILL);
    }
    escaped::end_all();
}

/// A process that leads a group of its own. Dropped, the group is killed, and so is what has left it as far as that can
/// be known: see [`adopt_orphans`].
#[derive(Debug)]
pub struct Group {
    child: Child,
    mark: String,
    status: Option<ExitStatus>,
}

impl Group {
    pub fn spawn(command: &mut Command) -> io::Result<Self> {
        let mark = escaped::new_mark();
        command.process_group(0).env(escaped::VARIABLE, &mark);
        // One step: a child that nobody is known to wait for would be waited for by whoever ends another group.
        let mut leaders = leaders();
        let group = Self { child: standing_back::spawn(command)?, mark, status: None };
        leaders.live.insert(group.id().as_raw_nonzero().get());
        Ok(group)
    }

    /// The process, which is also the group's.
    pub fn id(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    pub fn child(&mut self) -> &mut Child {
        &mut self.child
    }

    /// Kills what is left of the group, and returns how its first process ended.
    pub fn end(&mut self) -> io::Result<ExitStatus> {
        match self.status {
            // Its number may be somebody else's by now.
            Some(status) => Ok(status),
            None => {
                // Nobody is left to be killed, or everybody: both are fine.
                let _ = kill_process_group(self.id(), Signal::KILL);
                // Before it is waited for: after that its number may be somebody else's.
                let number = self.id().as_raw_nonzero().get();
                let mut known = leaders();
                known.live.remove(&number);
                known.ending.insert(number);
                drop(known);
                let status = self.child.wait();
                leaders().ending.remove(&number);
                self.status = status.as_ref().ok().copied();
                escaped::end(&self.mark);
                status
            }
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let _ = self.end();
    }
}

/// Whether a child has exited; it is left to be waited for, so that its number stays its own.
pub fn has_exited(process: Pid) -> bool {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG;
    !matches!(waitid(WaitId::Pid(process), options), Ok(None))
}

/// How a process ended, in words.
pub fn describe(status: io::Result<ExitStatus>, memory_bytes: Option<u64>) -> String {
    let status = match status {
        Ok(status) => status,
        Err(error) => return format!("cannot be waited for: {error}"),
    };
    let Some(signal) = status.signal() else {
        return format!("exited with status {}", status.code().unwrap_or_default());
    };
    let limit = match memory_bytes {
        Some(bytes) if signal == Signal::KILL.as_raw() => format!(" (its memory limit is {} MiB)", bytes >> 20),
        _ => String::new(),
    };
    let known = [
        (Signal::HUP, "SIGHUP"),
        (Signal::INT, "SIGINT"),
        (Signal::QUIT, "SIGQUIT"),
        (Signal::ILL, "SIGILL"),
        (Signal::TRAP, "SIGTRAP"),
        (Signal::ABORT, "SIGABRT"),
        (Signal::BUS, "SIGBUS"),
        (Signal::FPE, "SIGFPE"),
        (Signal::KILL, "SIGKILL"),
        (Signal::SEGV, "SIGSEGV"),
        (Signal::PIPE, "SIGPIPE"),
        (Signal::ALARM, "SIGALRM"),
        (Signal::TERM, "SIGTERM"),
        (Signal::XCPU, "SIGXCPU"),
        (Signal::XFSZ, "SIGXFSZ"),
        (Signal::SYS, "SIGSYS"),
    ];
    match known.iter().find(|(known, _)| known.as_raw() == signal) {
        Some((_, name)) => format!("was killed by {name}{limit}"),
        None => format!("was killed by signal {signal}{limit}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_is_ended_with_its_children() {
        let mut command = Command::new("/bin/sh");
        let mut group = Group::spawn(command.args(["-c", "sleep 1000 & wait"])).unwrap();
        let number = group.id();
        assert!(!has_exited(number));
        assert_eq!(describe(group.end(), None), "was killed by SIGKILL");
        // The children are in the group too: it has nobody left once the kernel has taken them away.
        let begun = std::time::Instant::now();
        while rustix::process::test_kill_process_group(number).is_ok() {
            assert!(begun.elapsed() < Duration::from_secs(20));
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    #[test]
    fn an_ending_is_told_in_words() {
        let ended = |script: &str| {
            let mut group = Group::spawn(Command::new("/bin/sh").args(["-c", script])).unwrap();
            while !has_exited(group.id()) {
                std::thread::sleep(Duration::from_millis(1));
            }
            describe(group.end(), Some(64 << 20))
        };
        assert_eq!(ended("exit 3"), "exited with status 3");
        assert_eq!(ended("kill -SEGV $$"), "was killed by SIGSEGV");
        assert_eq!(ended("kill -KILL $$"), "was killed by SIGKILL (its memory limit is 64 MiB)");
    }
}
