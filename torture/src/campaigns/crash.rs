//! `kill -9` at random moments while eight clients write: what was acknowledged is there, and nobody repairs anything.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use gpuemu_client::Client;
use gpuemu_common::protocol::{
    ListResults, NamedTensorData, ProjectReference, Request, Response, TensorData, ValidateOp,
};
use gpuemu_common::{DType, Stream, Tensor};

use crate::campaign::{Campaign, Ended, Extent, grouped};
use crate::daemon_process::{DaemonProcess, PATIENCE};

/// The campaign.
pub const CAMPAIGN: Campaign =
    Campaign { name: "crash", about: "kill -9 at random moments under writes of 8 clients", run };

const CLIENTS: u64 = 8;

fn run(extent: &Extent) -> Ended {
    match kill_many(extent.count(1000, 25), extent.seed) {
        Ok(figures) => Ended::Held(figures),
        Err(problem) => Ended::Broken(problem),
    }
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
        let runs: Vec<u64> = std::thread::scope(|scope| {
            let clients: Vec<_> = (0..CLIENTS).map(|_| scope.spawn(|| write(&socket, &project, &over))).collect();
            std::thread::sleep(delay);
            daemon.kill();
            over.store(true, Ordering::Relaxed);
            clients.into_iter().flat_map(|client| client.join().unwrap_or_default()).collect()
        });
        acknowledged.extend(runs);
        let start = Instant::now();
        daemon.restart()?;
        slowest = slowest.max(start.elapsed());
    }
    let kept = stored(&mut daemon.client()?, &project)?;
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

/// A right output of `relu`, to be judged and kept.
fn right_answer(project: &ProjectReference) -> Result<Request, String> {
    let tensor = Tensor::from_f64(DType::F32, vec![2, 3], &[1.0; 6]).map_err(|error| error.to_string())?;
    let tensor = TensorData::base64(&tensor);
    let mut inputs = NamedTensorData::default();
    inputs.0.push(("input".to_string(), tensor.clone()));
    Ok(Request::ValidateOp(ValidateOp {
        project: project.clone(),
        op_name: "relu".to_string(),
        inputs,
        output: Some(tensor),
        outputs: None,
        kwargs: Default::default(),
    }))
}

fn stored(client: &mut Client, project: &ProjectReference) -> Result<BTreeSet<u64>, String> {
    let request = ListResults { project: project.clone(), op_name: None, limit: Some(u64::MAX), since_hours: None };
    match client.call(&Request::ListResults(request)).map_err(|error| error.to_string())? {
        Response::Results { results } => Ok(results.into_iter().filter_map(|result| result.run).collect()),
        _ => Err("ListResults has another answer".to_string()),
    }
}
