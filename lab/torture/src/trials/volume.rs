//! A store with very many results: whoever asks is answered while they look.

use std::time::{Duration, Instant};

use crate::daemon_process::DaemonProcess;
use crate::history::History;
use crate::kernel_project::{RIGHT, WRONG, kernel_project};
use crate::trial::{Ended, Extent, Trial, grouped};

pub const TRIAL: Trial =
    Trial { name: "volume", about: "1,000,000 stored results: every question is answered within a second", run };

/// What nobody minds to wait for.
const AIM: Duration = Duration::from_secs(1);

/// Time in which the store comes to rest after a write.
const REST: Duration = Duration::from_secs(1);

/// How often each command is timed; the median counts.
const REPEATS: usize = 3;

fn run(extent: &Extent) -> Ended {
    match ask_everything(extent.count(1_000_000, 50_000)) {
        Ok(figures) => Ended::Held(figures),
        Err(problem) => Ended::Broken(problem),
    }
}

fn ask_everything(count: u64) -> Result<Vec<String>, String> {
    let mut daemon = DaemonProcess::start()?;
    let project = kernel_project(&daemon)?;
    let root = project.root.clone();
    // Real runs are what the many results are copies of.
    daemon.gpuemu(&root, &["test", "--base-seed", "1"], 1)?;
    daemon.kill();
    let history = History::write(&daemon.store(), &root, count)?;
    let mut figures = vec![format!(
        "{} results of {} runs, {} failures, {} MB",
        grouped(history.results),
        grouped(history.runs),
        grouped(history.failures),
        history.bytes >> 20
    )];
    let mut times = Vec::new();
    times.push(("start", timed(|| daemon.restart())?));
    // The newest run, which a baseline is made of: how long that takes is for its cases to say, not for the store.
    daemon.gpuemu(&root, &["test", "--quick", "--base-seed", "2"], 1)?;
    let in_mid_write = timed(|| daemon.restart())?;
    daemon.gpuemu(&root, &["test", "--quick", "--base-seed", "2"], 1)?;
    std::thread::sleep(REST);
    times.push(("start after kill -9", timed(|| daemon.restart())?));
    let oldest = history.oldest_failure.to_string();
    let questions: &[(&'static str, &[&str], i32)] = &[
        ("status", &["status"], 0),
        ("failures", &["failures"], 0),
        ("failures --op", &["failures", "--op", WRONG], 0),
        ("failures show", &["failures", "show", &oldest], 0),
        ("report", &["report"], 1),
        ("report --format json", &["report", "--format", "json"], 1),
        ("report --op", &["report", "--op", RIGHT], 0),
        ("report --since-hours", &["report", "--since-hours", "24"], 1),
        ("baseline", &["baseline", "good"], 0),
        ("diff", &["diff", "--baseline", "good"], 1),
    ];
    for (name, arguments, code) in questions {
        times.push((name, median(|| daemon.gpuemu(&root, arguments, *code).map(|_| ()))?));
    }
    figures.extend(times.iter().map(|(name, time)| described(name, *time)));
    let report = daemon.gpuemu(&root, &["report", "--format", "json"], 1)?;
    history.check(&report).map_err(|problem| format!("{problem} ({})", figures.join("; ")))?;
    figures.push(described("start after kill -9 in mid-write", in_mid_write));
    let slow: Vec<String> =
        times.iter().filter(|(_, time)| *time > AIM).map(|(name, time)| described(name, *time)).collect();
    if !slow.is_empty() {
        return Err(format!("slower than {} s: {} ({})", AIM.as_secs(), slow.join(", "), figures.join("; ")));
    }
    Ok(figures)
}

fn described(name: &str, time: Duration) -> String {
    format!("{name} {:.2} s", time.as_secs_f64())
}

fn timed(work: impl FnOnce() -> Result<(), String>) -> Result<Duration, String> {
    let start = Instant::now();
    work()?;
    Ok(start.elapsed())
}

fn median(mut work: impl FnMut() -> Result<(), String>) -> Result<Duration, String> {
    let mut times = (0..REPEATS).map(|_| timed(&mut work)).collect::<Result<Vec<_>, _>>()?;
    times.sort();
    Ok(times[REPEATS / 2])
}
