//! Hostile messages and files: nothing panics, aborts, or takes memory without end.

mod fuzzing;
mod mutating;

use crate::trial::{Ended, Extent, Trial};

pub const TRIAL: Trial =
    Trial { name: "hostile", about: "fuzzed frames, requests, tensors, settings, PTX, reports, descriptors", run };

fn run(extent: &Extent) -> Ended {
    // The short form needs no instrumented build: it changes the inputs that are kept.
    let done = if extent.short { mutating::run(extent.seed) } else { fuzzing::run(extent.seed) };
    done.into()
}
