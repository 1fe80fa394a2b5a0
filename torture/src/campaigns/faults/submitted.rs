//! Faults while the daemon judges an output that a client submits: small ones in the message, and large ones that many
//! threads read from shared memory.

use std::fs::File;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use gpuemu_client::Client;
use gpuemu_client::shared_memory::Segment;
use gpuemu_common::DType;
use gpuemu_common::protocol::{ProjectReference, Request, Response, TensorData};
use tempfile::TempDir;

use super::points::Point;
use super::trial::PROGRAM;
use crate::daemon_process::{PATIENCE, command};
use crate::requests::{relu_of_itself, right_answer};

/// What begins the names of places that only this comes by.
pub const AREA: &str = "validate.";

/// Strikes at each of these places, first and later, by errors and panics; how often.
pub fn strike(points: &[&Point]) -> Result<usize, String> {
    let mut tried = 0;
    for point in points {
        for hit in [1, 2] {
            for panics in if point.fallible { &[true, false][..] } else { &[true] } {
                tried_at(point, hit, *panics).map_err(|problem| format!("{} at hit {hit}: {problem}", point.name))?;
                tried += 1;
            }
        }
    }
    Ok(tried)
}

fn tried_at(point: &Point, hit: usize, panics: bool) -> Result<(), String> {
    let failed = |error: std::io::Error| error.to_string();
    let folder = TempDir::new().map_err(failed)?;
    let log = folder.path().join("errors");
    let kind = if panics { "panic" } else { "return" };
    let skipped = if hit > 1 { format!("{}*off->", hit - 1) } else { String::new() };
    let mut daemon = command(folder.path(), PROGRAM)?;
    daemon.args(["daemon", "run"]).env("FAILPOINTS", format!("{}={skipped}1*{kind}", point.name));
    let mut daemon = daemon.stderr(File::create(&log).map_err(failed)?).stdin(Stdio::null()).spawn().map_err(failed)?;
    let answered = answers(folder.path(), hit);
    let _ = daemon.kill();
    let _ = daemon.wait();
    let (before, struck) = answered?;
    if before != hit as u64 - 1 && point.name != "validate.read_part" {
        return Err(format!("{before} of {} right outputs passed before the fault", hit - 1));
    }
    let words = std::fs::read_to_string(&log).map_err(failed)?;
    if panics && !words.contains(&format!("failpoint {} panic", point.name)) {
        return Err(format!("it was not reached: {words}"));
    }
    if struck { Ok(()) } else { Err("every output passed".to_string()) }
}

/// Submits right outputs until one does not pass; how many did before, and whether one did not.
fn answers(folder: &Path, hit: usize) -> Result<(u64, bool), String> {
    let socket = folder.join("home/gpuemu.sock");
    let deadline = std::time::Instant::now() + PATIENCE;
    let mut client = loop {
        match Client::connect(&socket, PATIENCE) {
            Ok(client) => break client,
            Err(error) if std::time::Instant::now() > deadline => return Err(error.to_string()),
            Err(_) => std::thread::sleep(Duration::from_millis(2)),
        }
    };
    let project = ProjectReference { root: folder.to_path_buf(), config: None, digest: None, python: None };
    let mut segment = Segment::create().map_err(|error| error.to_string())?;
    let mut passed = 0;
    // In turn: what the one comes by, the other does not.
    for number in 0..4 * hit {
        let request = if number % 2 == 0 { right_answer(&project)? } else { large(&project, &mut segment)? };
        match client.call(&request) {
            Ok(Response::ValidationResult { result }) if result.passed => passed += u64::from(number % 2 == 0),
            _ => {
                let pinged = Client::connect(&socket, PATIENCE).is_ok();
                return if pinged { Ok((passed, true)) } else { Err("the daemon no longer answers".to_string()) };
            }
        }
    }
    Ok((passed, false))
}

fn large(project: &ProjectReference, segment: &mut Segment) -> Result<Request, String> {
    let (rows, columns) = (2048, 1024);
    let bytes = 1.0f32.to_le_bytes().repeat(rows * columns);
    segment.clear();
    let place = segment.push(&bytes).map_err(|error| error.to_string())?;
    let shape = vec![rows, columns];
    let dtype = DType::F32;
    let data = TensorData { dtype, shape, strides: None, offset: 0, data: None, binary: None, shared: Some(place) };
    Ok(relu_of_itself(project, data))
}
