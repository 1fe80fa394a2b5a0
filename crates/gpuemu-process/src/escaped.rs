//! Processes that left the group they were started in, as `setsid` does. A process that adopts orphans becomes their
//! parent when their own is gone, and knows them by a mark in their environment.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, WaitOptions, kill_process, waitpid};

use super::leaders;

/// The variable that tells whose a process is.
pub(crate) const VARIABLE: &str = "GPUEMU_GROUP";

/// How long processes that keep starting others are chased.
const PATIENCE: Duration = Duration::from_secs(2);

static ADOPTING: AtomicBool = AtomicBool::new(false);

/// Makes this process the parent of whatever it started and whose own parent is gone, so that a process that left its
/// group is ended with it. For programs whose every child is a [`Group`](crate::Group): children that nobody is known
/// to wait for are waited for.
///
/// What has left its group and cleared its environment is ended only by [`end_all`](crate::end_all).
pub fn adopt_orphans() -> io::Result<()> {
    #[cfg(target_os = "linux")]
    {
        rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
        ADOPTING.store(true, Ordering::Relaxed);
    }
    Ok(())
}

/// A mark that no other group has.
pub(crate) fn new_mark() -> String {
    static MADE: AtomicU64 = AtomicU64::new(0);
    format!("{}-{}", std::process::id(), MADE.fetch_add(1, Ordering::Relaxed))
}

/// Ends the processes with a mark.
pub(crate) fn end(mark: &str) {
    let entry = format!("{VARIABLE}={mark}");
    end_those(|process| is_marked(process, entry.as_bytes()));
}

/// Ends every child that leads no group.
pub(crate) fn end_all() {
    end_those(|_| true);
}

/// Ends children that lead no group, as long as there are some: the children of a process that is ended come after it.
fn end_those(chosen: impl Fn(i32) -> bool) {
    if !ADOPTING.load(Ordering::Relaxed) {
        return;
    }
    let deadline = Instant::now() + PATIENCE;
    loop {
        let mut killed = false;
        for number in children() {
            // Held: nobody starts a process between the look and what follows from it.
            let known = leaders();
            let Some(process) = Pid::from_raw(number).filter(|_| !known.has(number)) else { continue };
            // One that has ended by itself is taken out of the system's table, whosever it was.
            if matches!(waitpid(Some(process), WaitOptions::NOHANG), Ok(None)) && chosen(number) {
                let _ = kill_process(process, Signal::KILL);
                killed = true;
            }
        }
        if !killed || Instant::now() >= deadline {
            return;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// The children of this process.
fn children() -> Vec<i32> {
    let mut numbers = Vec::new();
    for task in std::fs::read_dir("/proc/self/task").into_iter().flatten().flatten() {
        let text = std::fs::read_to_string(task.path().join("children")).unwrap_or_default();
        numbers.extend(text.split_ascii_whitespace().filter_map(|number| number.parse::<i32>().ok()));
    }
    numbers
}

fn is_marked(process: i32, entry: &[u8]) -> bool {
    let environment = std::fs::read(format!("/proc/{process}/environ")).unwrap_or_default();
    environment.split(|byte| *byte == 0).any(|other| other == entry)
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests fail by panicking")]
    use std::process::{Command, Stdio};

    use super::*;
    use crate::Group;

    /// The number of a process that the shell of a group has put into a session of its own.
    fn escaped(group: &mut Group) -> i32 {
        let mut line = String::new();
        let output = group.child().stdout.take().unwrap();
        io::BufRead::read_line(&mut io::BufReader::new(output), &mut line).unwrap();
        line.trim().parse().unwrap()
    }

    fn start() -> Group {
        let script = "setsid sh -c 'echo $$; sleep 1000 & wait' & wait";
        Group::spawn(Command::new("/bin/sh").args(["-c", script]).stdout(Stdio::piped())).unwrap()
    }

    fn is_there(process: i32) -> bool {
        std::path::Path::new(&format!("/proc/{process}")).exists()
    }

    /// A killed process is there until whoever has adopted it has waited for it.
    fn is_gone_soon(process: i32) -> bool {
        let begun = std::time::Instant::now();
        while is_there(process) && begun.elapsed() < std::time::Duration::from_secs(20) {
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        !is_there(process)
    }

    #[test]
    fn what_left_its_group_is_ended_with_it_and_what_left_another_is_not() {
        adopt_orphans().unwrap();
        let (mut one, mut other) = (start(), start());
        let (first, second) = (escaped(&mut one), escaped(&mut other));
        drop(one);
        assert!(is_gone_soon(first) && is_there(second));
        drop(other);
        assert!(is_gone_soon(second));
    }
}
