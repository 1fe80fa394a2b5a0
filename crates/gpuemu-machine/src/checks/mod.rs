//! What is checked while a kernel runs, and what is found.

pub mod accesses;
pub mod clocks;
pub mod collector;
pub mod readers;
pub mod shared_shadow;
pub mod taint;

pub use accesses::{AccessLog, AccessRecord, RacePair, find_races};
pub use clocks::{Brought, Clocks, Knowledge, ReleaseTable};
pub use collector::{Collector, Sighting};
pub use shared_shadow::{Conflict, SharedShadow};
pub use taint::{Flow, Suspects, Taint};

use gpuemu_model::emulation::AccessCheck;

/// What is checked beside the bounds of memory.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Checks {
    /// Reads of memory that nothing wrote.
    pub init: bool,
    pub race: bool,
    /// Barriers and operations of a warp.
    pub sync: bool,
}

impl Checks {
    /// Those that were chosen.
    pub fn of(chosen: &[AccessCheck]) -> Self {
        Self {
            init: chosen.contains(&AccessCheck::Init),
            race: chosen.contains(&AccessCheck::Race),
            sync: chosen.contains(&AccessCheck::Sync),
        }
    }
}
