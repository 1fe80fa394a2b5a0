//! 64 clients at once: every answer is the right one, nothing acknowledged is missing, and a Ping does not wait.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use gpuemu_wire::Client;
use gpuemu_wire::protocol::{Request, Response};

use crate::daemon_process::{DaemonProcess, PATIENCE};
use crate::mixed::{Kept, MixedClient, Projects, Question, Share};
use crate::trial::{Ended, Extent, Trial, grouped};

pub const TRIAL: Trial = Trial { name: "load", about: "64 clients with 1,000 mixed requests each", run };

const CLIENTS: u64 = 64;

/// Clients of the 64 that only measure how long a Ping takes.
const PINGING: u64 = 4;

/// Time between two Pings of a client.
const BETWEEN_PINGS: Duration = Duration::from_millis(5);

/// How far the clients that work stand back behind those that measure.
const CLIENT_NICE: i32 = 10;

/// Pings before the load.
const ALONE: u64 = 200;

/// What 99 of 100 Pings should take at most.
const AIM: Duration = Duration::from_millis(5);

/// What they take where Pings wait for work, on any machine.
const QUEUED: Duration = Duration::from_millis(100);

const SHARES: &[Share] = &[
    (Question::Ping, 10),
    (Question::Status, 8),
    (Question::Ops, 5),
    (Question::Right, 20),
    (Question::Wrong, 10),
    (Question::Case, 10),
    (Question::Submit, 10),
    (Question::Record, 10),
    (Question::Results, 6),
    (Question::Failures, 6),
    (Question::Report, 2),
    (Question::Unknown, 2),
    (Question::Job, 2),
    (Question::Python, 1),
];

fn run(extent: &Extent) -> Ended {
    ask_all(extent.count(1000, 40), extent.seed).into()
}

fn ask_all(requests: u64, seed: u64) -> Result<Vec<String>, String> {
    let daemon = DaemonProcess::start()?;
    let projects = Projects::make(&daemon)?;
    let socket = daemon.socket();
    // What this machine does to a Ping of a daemon that has nothing else to do.
    let alone = ping(&socket, ALONE, &AtomicBool::new(true))?;
    let over = AtomicBool::new(false);
    let start = Instant::now();
    let (working, pings) = std::thread::scope(|scope| {
        let pinging: Vec<_> = (0..PINGING).map(|_| scope.spawn(|| ping(&socket, requests, &over))).collect();
        let working: Vec<_> = (PINGING..CLIENTS)
            .map(|number| {
                let (socket, projects) = (&socket, &projects);
                scope.spawn(move || work(socket, projects, requests, seed.wrapping_mul(1000) + number))
            })
            .collect();
        let working: Vec<_> = working.into_iter().map(joined).collect();
        over.store(true, Ordering::Relaxed);
        (working, pinging.into_iter().map(joined).collect::<Result<Vec<_>, _>>().map(|pings| pings.concat()))
    });
    let seconds = start.elapsed().as_secs_f64();
    let errors: Vec<&String> = working.iter().filter_map(|one| one.as_ref().err()).collect();
    if let Some(first) = errors.first() {
        return Err(format!("{} of {CLIENTS} clients had an error; the first: {first}", errors.len()));
    }
    let working = working.into_iter().flatten();
    let (answered, kept) = working.fold((0, Kept::default()), |(sum, kept), one| (sum + one.0, kept.and(one.1)));
    complete(&daemon, kept)?;
    let pings = pings?;
    let (slow, aim) = (percentile(&pings, 99), if percentile(&pings, 99) <= AIM { "within" } else { "ABOVE" });
    if slow > QUEUED {
        return Err(format!("99 of 100 Pings took up to {}: they wait for work", milliseconds(slow)));
    }
    Ok(vec![
        format!("{CLIENTS} clients, {} requests in {seconds:.1} s", grouped(answered + pings.len() as u64)),
        "0 errors".to_string(),
        format!(
            "{} results acknowledged and stored, {} of them failures",
            grouped(kept.results),
            grouped(kept.failures)
        ),
        format!(
            "Ping p50 {}, p99 {} ({aim} the aim of {}), longest {}",
            milliseconds(percentile(&pings, 50)),
            milliseconds(slow),
            milliseconds(AIM),
            milliseconds(percentile(&pings, 100))
        ),
        format!(
            "before the load p50 {}, p99 {}",
            milliseconds(percentile(&alone, 50)),
            milliseconds(percentile(&alone, 99))
        ),
    ])
}

/// The time that so many of 100 take at most.
fn percentile(times: &[Duration], percent: usize) -> Duration {
    let mut sorted = times.to_vec();
    sorted.sort();
    sorted.get(sorted.len().saturating_sub(1) * percent / 100).copied().unwrap_or_default()
}

fn joined<T>(thread: std::thread::ScopedJoinHandle<'_, Result<T, String>>) -> Result<T, String> {
    thread.join().unwrap_or_else(|_| Err("a client panicked".to_string()))
}

/// Asks until so many requests are answered; how many there were, and what was kept of them.
fn work(socket: &Path, projects: &Projects, requests: u64, seed: u64) -> Result<(u64, Kept), String> {
    // What these clients compute must not be what a Ping waits for: on Linux this is for the thread alone.
    rustix::process::nice(CLIENT_NICE).map_err(|error| error.to_string())?;
    let mut client = MixedClient::connect(socket, projects, seed)?;
    while client.answered < requests {
        client.ask(SHARES)?;
    }
    Ok((client.answered, client.kept))
}

/// Pings so many times, and until the others are done; how long each took.
fn ping(socket: &Path, requests: u64, over: &AtomicBool) -> Result<Vec<Duration>, String> {
    let mut client = Client::connect(socket, PATIENCE).map_err(|error| error.to_string())?;
    let mut times = Vec::new();
    while (times.len() as u64) < requests || !over.load(Ordering::Relaxed) {
        std::thread::sleep(BETWEEN_PINGS);
        let start = Instant::now();
        match client.call(&Request::Ping { protocol_version: None }) {
            Ok(Response::Pong { .. }) => times.push(start.elapsed()),
            Ok(_) => return Err("unexpected response to Ping".to_string()),
            Err(error) => return Err(format!("a Ping has no answer: {error}")),
        }
    }
    Ok(times)
}

/// The store has exactly what was acknowledged.
fn complete(daemon: &DaemonProcess, kept: Kept) -> Result<(), String> {
    match daemon.client()?.call(&Request::Status).map_err(|error| error.to_string())? {
        Response::Status { status }
            if (status.stored.results, status.stored.failures) == (kept.results, kept.failures) =>
        {
            Ok(())
        }
        Response::Status { status } => Err(format!("{:?} are stored, {kept:?} were acknowledged", status.stored)),
        _ => Err("unexpected response to Status".to_string()),
    }
}

fn milliseconds(time: Duration) -> String {
    format!("{:.2} ms", 1000.0 * time.as_secs_f64())
}
