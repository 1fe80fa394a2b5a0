//! The round trip of a Ping: on its own, and while a long job and a hung reference run.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::time::Instant;

use gpuemu_model::settings::{FuzzConfig, ProjectReference};
use gpuemu_wire::Client;
use gpuemu_wire::protocol::{FuzzOp, Request};

use crate::daemon_process::DaemonProcess;
use crate::row::Row;

const PINGS: usize = 4000;

/// The rows of this group.
pub fn rows() -> Vec<Row> {
    let Some(daemon) = DaemonProcess::start() else { return Vec::new() };
    let Some(mut client) = daemon.client() else { return Vec::new() };
    let bare = echo();
    let idle = pings(&mut client);
    let mut rows = vec![row("Ping, daemon idle", &idle, bare.as_deref(), "")];
    if let Some(jobs) = busy(&daemon) {
        let loaded = pings(&mut client);
        let note = format!("while {jobs} run; aim p99 of 5 ms");
        rows.push(row("Ping, long fuzz job and hung reference", &loaded, bare.as_deref(), &note));
    }
    rows
}

fn row(name: &str, seconds: &[f64], bare: Option<&[f64]>, note: &str) -> Row {
    let (median, late) = (quantile(seconds, 0.5), quantile(seconds, 0.99));
    let note = format!("p50 {:.3} ms, p99 {:.3} ms {note}", median * 1e3, late * 1e3);
    let peer = bare.map(|bare| quantile(bare, 0.5));
    Row::time(name, median, peer, "a bare Unix socket between two threads", &note)
}

fn quantile(sorted: &[f64], share: f64) -> f64 {
    sorted.get(((sorted.len().saturating_sub(1)) as f64 * share) as usize).copied().unwrap_or(f64::NAN)
}

fn timed(count: usize, mut work: impl FnMut() -> bool) -> Vec<f64> {
    let mut seconds = Vec::with_capacity(count);
    for _ in 0..count {
        let start = Instant::now();
        if work() {
            seconds.push(start.elapsed().as_secs_f64());
        }
    }
    seconds.sort_by(f64::total_cmp);
    seconds
}

fn pings(client: &mut Client) -> Vec<f64> {
    timed(PINGS, || client.call(&Request::Ping { protocol_version: None }).is_ok())
}

/// What a round trip costs without anything behind it.
fn echo() -> Option<Vec<f64>> {
    let (mut near, mut far) = UnixStream::pair().ok()?;
    let thread = std::thread::spawn(move || {
        let mut message = [0; 64];
        while far.read_exact(&mut message).is_ok() && far.write_all(&message).is_ok() {}
    });
    let mut message = [0; 64];
    let seconds = timed(PINGS, || near.write_all(&message).is_ok() && near.read_exact(&mut message).is_ok());
    drop(near);
    let _ = thread.join();
    Some(seconds)
}

/// Starts a job that takes long and one whose reference hangs.
fn busy(daemon: &DaemonProcess) -> Option<&'static str> {
    let config = |reference: &str| {
        format!(
            "[project]\nname = \"p\"\nframework = \"numpy\"\n\n[[ops]]\nname = \"relu\"\nmodule = \"relu\"\ntimeout = 500.0\n{reference}"
        )
    };
    let relu = "import numpy as np\n\ndef relu(input):\n    return np.maximum(input, 0)\n";
    let long = daemon.project("long", &[("gpuemu.toml", &config("")), ("relu.py", relu)])?;
    let hang = "import time\ntime.sleep(600)\n";
    let files = [("gpuemu.toml", &*config("reference = \"hang.py\"\n")), ("relu.py", relu), ("hang.py", hang)];
    let hung = daemon.project("hung", &files)?;
    let mut client = daemon.client()?;
    for project in [&long, &hung] {
        client.call(&Request::SubmitJob { job: Box::new(fuzz(project)) }).ok()?;
    }
    // The workers need a moment to start: what is measured is the steady state.
    std::thread::sleep(std::time::Duration::from_secs(2));
    Some("both")
}

fn fuzz(project: &ProjectReference) -> Request {
    let config = FuzzConfig { iterations: Some(1_000_000_000), seed: Some(7), ..FuzzConfig::default() };
    Request::FuzzOp(FuzzOp {
        project: project.clone(),
        op_name: "relu".to_string(),
        config,
        fail_fast: false,
        shard: None,
    })
}
