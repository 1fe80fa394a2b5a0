//! `kill -9` at random moments while eight clients write: what was acknowledged is there, and nobody repairs anything.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use gpuemu_model::settings::ProjectReference;
use gpuemu_store::{ResultQuery, Store};
use gpuemu_tensor::Stream;
use gpuemu_wire::Client;
use gpuemu_wire::protocol::Response;

use crate::daemon_process::{DaemonProcess, PATIENCE};
use crate::requests::right_answer;
use crate::trial::{Ended, Extent, Trial, grouped};

pub const TRIAL: Trial = Trial { name: "crash", about: "kill -9 at random moments under writes of 8 clients", run };

const CLIENTS: u64 = 8;

fn run(extent: &Extent) -> Ended {
    kill_many(extent.count(1000, 25), extent.seed).into()
}

fn kill_many(kills: u64, seed: u64) -> Result<Vec<String>, String> {
    let mut daemon = DaemonProcess::start()?;
    let project = daemon.project("project", &[])?;
    let mut choices = Stream::new(seed, "torture/crash");
    let mut acknowledged = BTreeSet::new();
    let mut slowest = Duration::ZERO;
    for _ in 0..kills {
        let delay = Duration::from_micros(choices.below(60_000));
        let socket = daemon.socket();
        let over = AtomicBool::new(false);
        let runs = std::thread::scope(|scope| {
            let clients: Vec<_> = (0..CLIENTS).map(|_| scope.spawn(|| write(&socket, &project, &over))).collect();
            std::thread::sleep(delay);
            daemon.kill();
            over.store(true, Ordering::Relaxed);
            let runs: Result<Vec<Vec<u64>>, _> = clients.into_iter().map(|client| client.join()).collect();
            runs.map_err(|_| "a client panicked".to_string())
        })?;
        acknowledged.extend(runs.into_iter().flatten());
        let start = Instant::now();
        daemon.restart()?;
        slowest = slowest.max(start.elapsed());
    }
    // Killed once more, and read as a daemon would: answers list no more than so many results.
    daemon.kill();
    let kept = kept(&daemon.folder.path().join("home/db/gpuemu.redb"), &project)?;
    let lost = acknowledged.difference(&kept).count();
    if lost > 0 {
        return Err(format!("{lost} of {} acknowledged results are gone", acknowledged.len()));
    }
    if (acknowledged.len() as u64) < kills {
        return Err(format!("only {} results were acknowledged before {kills} kills", acknowledged.len()));
    }
    Ok(vec![
        format!("{} kills", grouped(kills)),
        format!("{} acknowledged results of {CLIENTS} clients", grouped(acknowledged.len() as u64)),
        "0 lost".to_string(),
        format!("slowest start after a kill {:.2} s", slowest.as_secs_f64()),
    ])
}

/// The runs of a project in a store.
fn kept(store: &Path, project: &ProjectReference) -> Result<BTreeSet<u64>, String> {
    let root = std::fs::canonicalize(&project.root).map_err(|error| error.to_string())?;
    let store = Store::open(store).map_err(|error| error.to_string())?;
    let results = store.results(&root.to_string_lossy(), &ResultQuery::default()).map_err(|error| error.to_string())?;
    Ok(results.into_iter().map(|result| result.run).collect())
}

/// Writes until the daemon is gone; the runs that it acknowledged.
fn write(socket: &Path, project: &ProjectReference, over: &AtomicBool) -> Vec<u64> {
    let mut runs = Vec::new();
    let Ok(mut client) = Client::connect(socket, PATIENCE) else { return runs };
    let Ok(request) = right_answer(project) else { return runs };
    while !over.load(Ordering::Relaxed)
        && let Ok(Response::ValidationResult { result }) = client.call(&request)
    {
        runs.extend(result.run);
    }
    runs
}
