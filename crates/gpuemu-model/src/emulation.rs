//! What the PTX machine saw while it ran a compiled kernel, as it travels and is shown.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::schema::JsonSchema;

/// A group of checks, which can be chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AccessCheck {
    /// Bounds, alignment, freed and read-only memory.
    Memory,
    /// Memory that is read before anything wrote it, outputs that nothing wrote.
    Init,
    /// Accesses that nothing orders.
    Race,
    /// Barriers and operations of a warp.
    Sync,
}

impl AccessCheck {
    pub const ALL: [AccessCheck; 4] = [Self::Memory, Self::Init, Self::Race, Self::Sync];

    /// The name used in options and reports.
    pub const fn name(self) -> &'static str {
        match self {
            AccessCheck::Memory => "memory",
            AccessCheck::Init => "init",
            AccessCheck::Race => "race",
            AccessCheck::Sync => "sync",
        }
    }
}

impl fmt::Display for AccessCheck {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(self.name())
    }
}

/// What exactly was wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AccessFault {
    /// Outside of every buffer, but near one.
    OutOfBounds,
    /// An address that belongs to nothing, null among them.
    Unmapped,
    /// An address that is not a multiple of the access's size.
    Misaligned,
    /// A store to memory that may only be read.
    ReadOnly,
    /// A read of memory that nothing wrote.
    Uninitialised,
    /// An output, or a part of it, that nothing wrote.
    NeverWritten,
    /// Two accesses, at least one of them a write, that nothing orders.
    Race,
    /// An access to the target of an asynchronous copy before it was waited for.
    CopyInFlight,
    /// A barrier that only some threads of a warp reached.
    DivergentBarrier,
    /// A barrier that not as many threads reached as it waits for.
    BarrierCount,
    /// A shuffle that reads from a lane that does not take part.
    InactiveLane,
    /// A member mask that does not hold the lane itself, or names lanes that do not come.
    MemberMask,
}

impl AccessFault {
    /// The check that finds it.
    pub const fn check(self) -> AccessCheck {
        match self {
            Self::OutOfBounds | Self::Unmapped | Self::Misaligned | Self::ReadOnly => AccessCheck::Memory,
            Self::Uninitialised | Self::NeverWritten => AccessCheck::Init,
            Self::Race | Self::CopyInFlight => AccessCheck::Race,
            Self::DivergentBarrier | Self::BarrierCount | Self::InactiveLane | Self::MemberMask => AccessCheck::Sync,
        }
    }

    /// The name used in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::OutOfBounds => "out_of_bounds",
            Self::Unmapped => "unmapped",
            Self::Misaligned => "misaligned",
            Self::ReadOnly => "read_only",
            Self::Uninitialised => "uninitialised",
            Self::NeverWritten => "never_written",
            Self::Race => "race",
            Self::CopyInFlight => "copy_in_flight",
            Self::DivergentBarrier => "divergent_barrier",
            Self::BarrierCount => "barrier_count",
            Self::InactiveLane => "inactive_lane",
            Self::MemberMask => "member_mask",
        }
    }
}

/// A place in the code of a kernel.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub struct CodePlace {
    /// The instruction, as written in the PTX.
    pub instruction: String,
    /// Its line in the PTX, from 1; 0 where it is no line of PTX, as of the line that launches a kernel.
    pub ptx_line: usize,
    /// The file that it was compiled from, where the PTX says so.
    pub file: Option<String>,
    /// Its line there, from 1.
    pub line: Option<u64>,
}

impl fmt::Display for CodePlace {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.file, self.line) {
            (Some(file), Some(line)) if self.ptx_line == 0 => write!(formatter, "{file}:{line}"),
            (Some(file), Some(line)) => write!(formatter, "{file}:{line} (PTX line {})", self.ptx_line),
            _ => write!(formatter, "PTX line {}", self.ptx_line),
        }
    }
}

/// A thread of a launch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub struct ThreadPlace {
    /// Its block, in x, y and z.
    pub block: [u32; 3],
    /// Itself in the block, in x, y and z.
    pub thread: [u32; 3],
    /// Its warp in the block.
    pub warp: u32,
    /// Its lane in the warp.
    pub lane: u32,
}

impl fmt::Display for ThreadPlace {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ThreadPlace { block: [bx, by, bz], thread: [x, y, z], warp, lane } = self;
        write!(formatter, "block ({bx}, {by}, {bz}), thread ({x}, {y}, {z}), warp {warp}, lane {lane}")
    }
}

/// The other side of a finding: who wrote last, or with whom a race is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct OtherAccess {
    /// Where in the code.
    pub place: CodePlace,
    /// By whom.
    pub thread: ThreadPlace,
    /// Whether it wrote.
    pub write: bool,
}

/// One thing that was wrong, the first time that it was seen at its place.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AccessFinding {
    /// What was wrong.
    pub fault: AccessFault,
    /// In one sentence, without the place.
    pub message: String,
    /// Where in the code; an output that nothing wrote has no place.
    pub place: Option<CodePlace>,
    /// By whom.
    pub thread: Option<ThreadPlace>,
    /// The address, of memory.
    pub address: Option<u64>,
    /// The buffer or variable that it belongs to, or fell outside of.
    pub buffer: Option<String>,
    /// Bytes from the buffer's beginning.
    pub offset: Option<i64>,
    /// The other side.
    pub other: Option<OtherAccess>,
    /// How often it was seen at this place.
    pub occurrences: u64,
}

impl AccessFinding {
    /// For people: what was wrong, and on a line each where, by whom, in which memory, with whom and how often.
    /// `buffer_bytes` is the size of its buffer, where that is known.
    pub fn lines(&self, buffer_bytes: Option<u64>) -> Vec<String> {
        let mut lines = vec![self.message.clone()];
        lines.extend(self.place.as_ref().map(|place| format!("at {place}: {}", place.instruction)));
        lines.extend(self.thread.map(|thread| format!("by {thread}")));
        lines.extend(self.memory(buffer_bytes));
        lines.extend(self.other.as_ref().map(|other| {
            let did = if other.write { "written" } else { "read" };
            let when = if self.fault.check() == AccessCheck::Race { "also" } else { "last" };
            format!("{when} {did} by {} at {}: {}", other.thread, other.place, other.place.instruction)
        }));
        if self.occurrences > 1 {
            lines.push(format!("{} times at this place", self.occurrences));
        }
        lines
    }

    /// The address, and where that is from a buffer.
    fn memory(&self, buffer_bytes: Option<u64>) -> Option<String> {
        let address = self.address.map(|address| format!("address {address:#x}"));
        let place = self.buffer.as_deref().map(|buffer| match (self.offset, buffer_bytes) {
            (Some(offset), _) if offset < 0 => format!("{} bytes before {buffer}", offset.unsigned_abs()),
            (Some(offset), Some(bytes)) if offset.unsigned_abs() >= bytes => {
                let beyond = match offset.unsigned_abs() - bytes {
                    0 => "just".to_string(),
                    beyond => format!("{beyond} bytes"),
                };
                format!("{buffer} + {offset}, {beyond} past the end of its {bytes}")
            }
            (Some(offset), Some(bytes)) => format!("{buffer} + {offset}, of {bytes} bytes"),
            (Some(offset), None) => format!("{buffer} + {offset}"),
            (None, _) => format!("of {buffer}"),
        });
        let parts: Vec<String> = address.into_iter().chain(place).collect();
        (!parts.is_empty()).then(|| parts.join(", "))
    }
}

/// How much work a launch was.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct EmulationStatistics {
    /// Blocks that ran.
    pub blocks: u64,
    /// Instructions of warps.
    pub warp_instructions: u64,
    /// Instructions of lanes that took part.
    pub lane_operations: u64,
}
