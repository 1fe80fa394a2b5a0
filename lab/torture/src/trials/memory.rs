//! A million requests: the daemon takes no more memory, files and threads in the end than after it warmed up.

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use gpuemu_model::error_code::ErrorCode;
use gpuemu_wire::ClientError;
use gpuemu_wire::protocol::{GetResult, Request};

use crate::daemon_process::DaemonProcess;
use crate::history::History;
use crate::kernel_project::kernel_project;
use crate::mixed::{MixedClient, Projects, Question, Share};
use crate::trial::{Ended, Extent, Trial, grouped};

pub const TRIAL: Trial =
    Trial { name: "memory", about: "memory, files and threads of the daemon over 1,000,000 requests", run };

const CLIENTS: u64 = 16;

/// Growth that is no leak: a share of what there was, and so much.
const GROWTH: f64 = 0.10;
const GROWTH_KILOBYTES: f64 = 16.0 * 1024.0;

/// Files that come and go with connections, and threads that come and go with work.
const MORE_FILES: u64 = 8;
const MORE_THREADS: u64 = 2 * CLIENTS;

/// Time in which the daemon returns what it no longer uses: how much it took at its busiest moment is chance.
const REST: Duration = Duration::from_millis(2500);

/// Cheap questions are asked often, dear ones seldom, all of them.
const SHARES: &[Share] = &[
    (Question::Ping, 700),
    (Question::Status, 60),
    (Question::Ops, 5),
    (Question::Right, 40),
    (Question::Wrong, 10),
    (Question::Case, 30),
    (Question::Submit, 20),
    (Question::Record, 5),
    (Question::Results, 30),
    (Question::Failures, 30),
    (Question::Report, 2),
    (Question::Unknown, 60),
    (Question::Job, 2),
    (Question::Python, 1),
];

fn run(extent: &Extent) -> Ended {
    // Pages of the store stay in memory up to a limit. That is reached before anything is measured: what grows after
    // that is something else.
    let stored = extent.count(400_000, 2000);
    ask_on(stored, extent.count(1_000_000, 30_000), extent.seed).into()
}

fn ask_on(stored: u64, requests: u64, seed: u64) -> Result<Vec<String>, String> {
    let mut daemon = DaemonProcess::start()?;
    let history = fill(&mut daemon, stored)?;
    let projects = Projects::make(&daemon)?;
    let start = Instant::now();
    let mut figures = vec![format!("{} MB stored before", history.bytes >> 20)];
    let mut answered = 0;
    let mut warm: Option<Usage> = None;
    for percent in [10, 50, 100] {
        let goal = requests * percent / 100;
        answered += ask_until(&daemon.socket(), &projects, goal - answered, seed.wrapping_mul(1000) + percent)?;
        std::thread::sleep(REST);
        let usage = Usage::of(daemon.id())?;
        figures.push(format!("{percent} %: {usage}"));
        match &warm {
            None => warm = Some(usage),
            Some(warm) => usage.within(warm).map_err(|problem| format!("{problem} ({})", figures.join("; ")))?,
        }
    }
    let seconds = start.elapsed().as_secs_f64();
    figures.insert(0, format!("{} requests in {seconds:.0} s", grouped(answered)));
    Ok(figures)
}

/// Writes so many results, and has all of them read.
fn fill(daemon: &mut DaemonProcess, results: u64) -> Result<History, String> {
    let project = kernel_project(daemon)?;
    daemon.gpuemu(&project.root, &["test", "--quick", "--base-seed", "1"], 1)?;
    daemon.kill();
    let history = History::write(&daemon.store(), &project.root, results)?;
    daemon.restart()?;
    // The seed of no result: whoever looks for it looks at every one.
    let nowhere = GetResult { project, op_name: None, seed: 1 };
    match daemon.client()?.call(&Request::GetResult(nowhere)) {
        Err(ClientError::Refused { code: ErrorCode::NotFound, .. }) => Ok(history),
        answer => Err(format!("a seed that no result has is answered by {answer:?}")),
    }
}

/// Asks with all clients until so many requests are answered; how many there were.
fn ask_until(socket: &Path, projects: &Projects, requests: u64, seed: u64) -> Result<u64, String> {
    let answered = AtomicU64::new(0);
    let ask = |number: u64| {
        let mut client = MixedClient::connect(socket, projects, seed.wrapping_mul(CLIENTS) + number)?;
        while answered.load(Ordering::Relaxed) < requests {
            let before = client.answered;
            client.ask(SHARES)?;
            answered.fetch_add(client.answered - before, Ordering::Relaxed);
        }
        Ok::<(), String>(())
    };
    std::thread::scope(|scope| {
        let clients: Vec<_> = (0..CLIENTS).map(|number| scope.spawn(move || ask(number))).collect();
        let panicked = || Err("a client panicked".to_string());
        clients.into_iter().try_for_each(|client| client.join().unwrap_or_else(|_| panicked()))
    })?;
    Ok(answered.into_inner())
}

/// What a process takes.
struct Usage {
    kilobytes: u64,
    files: u64,
    threads: u64,
}

impl Usage {
    fn of(process: u32) -> Result<Self, String> {
        let folder = Path::new("/proc").join(process.to_string());
        let status = std::fs::read_to_string(folder.join("status")).map_err(|error| error.to_string())?;
        let number = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name));
            line.and_then(|line| line.split_whitespace().next()?.parse().ok()).ok_or_else(|| format!("no {name}"))
        };
        let files = std::fs::read_dir(folder.join("fd")).map_err(|error| error.to_string())?.count() as u64;
        Ok(Self { kilobytes: number("VmRSS:")?, files, threads: number("Threads:")? })
    }

    fn within(&self, warm: &Self) -> Result<(), String> {
        let most = warm.kilobytes as f64 * (1.0 + GROWTH) + GROWTH_KILOBYTES;
        if self.kilobytes as f64 > most {
            return Err(format!("its memory grew to {} MB, past {:.0} MB", self.kilobytes >> 10, most / 1024.0));
        }
        if self.files > warm.files + MORE_FILES {
            return Err(format!("its open files grew from {} to {}", warm.files, self.files));
        }
        if self.threads > warm.threads + MORE_THREADS {
            return Err(format!("its threads grew from {} to {}", warm.threads, self.threads));
        }
        Ok(())
    }
}

impl std::fmt::Display for Usage {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{} MB, {} files, {} threads", self.kilobytes >> 10, self.files, self.threads)
    }
}
