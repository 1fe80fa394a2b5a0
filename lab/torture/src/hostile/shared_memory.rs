//! Descriptors of shared memory. Nothing outside of segments is opened, and nothing beyond their end is read.

use std::sync::{LazyLock, Mutex, PoisonError};

use gpuemu_model::tensor_data::{SharedMemory, TensorData};
use gpuemu_wire::shared_memory::{Segment, SharedBytes, read};

use super::Target;

/// The target. The name `OWN` stands for a segment that is there.
pub const TARGET: Target = Target {
    name: "shared-memory",
    run,
    words: &[
        "OWN",
        "gpuemu-",
        "gpuemu-1-0",
        "../",
        "/etc/passwd",
        "gpuemu-/../../etc/passwd",
        "\\u0000",
        ".",
        "..",
        "\"offset\":",
        "\"length\":",
        "18446744073709551615",
        "4096",
    ],
    thousands: 1_500,
    thousands_short: 50,
};

/// Bytes of the segment.
const BYTES: usize = 5000;

/// A segment, and its name.
static OWN: LazyLock<Mutex<Option<(Segment, String)>>> = LazyLock::new(|| {
    let made = Segment::create().ok().and_then(|mut segment| {
        let place = segment.push(&std::array::from_fn::<u8, BYTES, _>(|byte| byte as u8)).ok()?;
        Some((segment, place.name))
    });
    Mutex::new(made)
});

fn run(bytes: &[u8]) {
    if let Ok(mut place) = serde_json::from_slice::<SharedMemory>(bytes) {
        open(&mut place);
    } else if let Ok(mut data) = serde_json::from_slice::<TensorData>(bytes) {
        let own = data.shared.as_mut().is_some_and(open);
        if let Ok(tensor) = data.tensor(&[], read) {
            assert!(!own || tensor.storage().len() <= BYTES);
        }
    }
}

/// Reads a place; whether it is in the segment of which everything is known.
fn open(place: &mut SharedMemory) -> bool {
    let own = OWN.lock().unwrap_or_else(PoisonError::into_inner);
    let Some((_, name)) = own.as_ref() else { return false };
    if place.name == "OWN" {
        place.name.clone_from(name);
    }
    let Ok(opened) = SharedBytes::open(place) else { return place.name == *name };
    if place.name != *name {
        return false;
    }
    let (start, length) = (place.offset as usize, place.length as usize);
    assert!(start + length <= BYTES, "{place:?} was opened");
    let expected: Vec<u8> = (start..start + length).map(|byte| byte as u8).collect();
    let whole = opened.read(0, length);
    assert!(whole.as_ref().is_ok_and(|whole| whole.as_bytes() == expected), "{place:?}: {whole:?}");
    assert!(opened.read(1, length).is_err() && opened.read(u64::MAX, 2).is_err());
    true
}
