//! Faults while the daemon judges an output that a client submits: small ones in the message, and large ones that many
//! threads read from shared memory.

use std::path::Path;

use gpuemu_model::settings::ProjectReference;
use gpuemu_model::tensor_data::TensorData;
use gpuemu_tensor::DType;
use gpuemu_wire::protocol::{Request, Response};
use gpuemu_wire::shared_memory::Segment;
use tempfile::TempDir;

use super::faulty_daemon::FaultyDaemon;
use super::points::Point;
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
    let folder = TempDir::new().map_err(|error| error.to_string())?;
    let daemon = FaultyDaemon::start(folder.path(), point, hit, panics)?;
    let (before, struck) = answers(&daemon, folder.path(), hit)?;
    if before != hit as u64 - 1 && point.name != "validate.read_part" {
        return Err(format!("{before} of {} right outputs passed before the fault", hit - 1));
    }
    if panics && !daemon.was_struck()? {
        return Err("it was not reached".to_string());
    }
    if struck { Ok(()) } else { Err("every output passed".to_string()) }
}

/// Submits right outputs until one does not pass; how many did before, and whether one did not.
fn answers(daemon: &FaultyDaemon, folder: &Path, hit: usize) -> Result<(u64, bool), String> {
    let mut client = daemon.connect()?;
    let project = ProjectReference { root: folder.to_path_buf(), config: None, digest: None, python: None };
    let mut segment = Segment::create().map_err(|error| error.to_string())?;
    let mut passed = 0;
    // In turn: what the one comes by, the other does not.
    for number in 0..4 * hit {
        let request = if number % 2 == 0 { right_answer(&project)? } else { large(&project, &mut segment)? };
        match client.call(&request) {
            Ok(Response::ValidationResult { result }) if result.passed => passed += u64::from(number % 2 == 0),
            _ => return daemon.connect().map(|_| (passed, true)),
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
