//! What a launch is given and what comes of it.

use std::time::Duration;

use gpuemu_model::emulation::{AccessCheck, AccessFinding, CodePlace, EmulationStatistics, ThreadPlace};
use serde::Deserialize;
use thiserror::Error;

use crate::approximations::Approximation;
use crate::tensor_core::TensorCore;

/// The byte that memory holds which nothing has written.
pub const POISON: u8 = 0xAB;

/// What a kernel may do with a buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    Input,
    /// Write it; what it held before is not meant to be read.
    Output,
    InputOutput,
}

/// Memory that a kernel is given a pointer to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Buffer {
    /// Its name, for findings.
    pub name: String,
    /// What the kernel may do with it.
    pub role: Role,
    /// Bytes that it has. More than `contents` where only the beginning is filled: the rest is memory that nothing has
    /// written, and takes no room until something does.
    pub bytes: u64,
    /// What it holds at the beginning, and poison beyond that. What an output holds counts as never written.
    pub contents: Vec<u8>,
    /// Bytes from an address that is a multiple of 512 to the first of the buffer.
    pub offset: u64,
    /// Bytes from the first of the buffer to the one that the pointer points at.
    pub pointer: u64,
    /// Bytes of an element, for messages.
    pub element_bytes: u32,
}

/// One argument of a launch, in the order of the parameters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Argument {
    /// A pointer to a buffer.
    Buffer(Buffer),
    /// A pointer into the buffer of another argument: tensors that share memory.
    Within {
        /// The argument, which is a buffer.
        argument: usize,
        /// Bytes from its first one.
        offset: u64,
    },
    /// Bytes by value, little endian: a number, a structure, a null pointer. As many as the parameter has.
    Value(Vec<u8>),
}

/// One launch of one entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Launch {
    /// Blocks in x, y and z.
    pub grid: [u32; 3],
    /// Threads of a block in x, y and z.
    pub block: [u32; 3],
    /// Bytes of dynamic shared memory.
    pub shared_bytes: u32,
    pub arguments: Vec<Argument>,
}

/// The order in which blocks are begun, where a kernel's result depends on it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BlockOrder {
    /// From the first to the last.
    #[default]
    Ascending,
    /// From the last to the first.
    Descending,
    /// Shuffled by a seed.
    #[serde(untagged)]
    Shuffled(u64),
}

/// A thread whose instructions are written down.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Trace {
    pub block: [u32; 3],
    /// The thread in the block.
    pub thread: [u32; 3],
    /// Most lines that are kept.
    pub most_lines: usize,
}

/// How a launch is run.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LaunchOptions {
    /// Which chip's tensor cores.
    pub tensor_core: TensorCore,
    /// How approximated functions round.
    pub approximation: Approximation,
    /// What is checked beside the bounds of memory, which always are.
    pub checks: Vec<AccessCheck>,
    /// Threads of this process that run blocks; 0 means all cores.
    pub workers: usize,
    /// Instructions of warps that may run without any block coming to its end.
    pub most_steps: u64,
    /// How long the whole launch may take; as long as it likes if nothing is said.
    #[serde(skip)]
    pub most_time: Option<Duration>,
    pub order: BlockOrder,
    /// A thread to trace.
    #[serde(skip)]
    pub trace: Option<Trace>,
    /// Most findings that are kept, by place.
    pub most_findings: usize,
}

impl Default for LaunchOptions {
    fn default() -> Self {
        Self {
            tensor_core: TensorCore::default(),
            approximation: Approximation::default(),
            checks: AccessCheck::ALL.to_vec(),
            workers: 0,
            most_steps: 1 << 28,
            most_time: None,
            order: BlockOrder::default(),
            trace: None,
            most_findings: 100,
        }
    }
}

/// What came of a launch that reached its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// The contents of the buffers afterwards, one for each buffer among the arguments, in order: all of their bytes. Inputs,
    /// which nothing can have changed, come back empty, and so does what is larger than 1 GiB.
    pub buffers: Vec<Vec<u8>>,
    /// What was wrong, in the order of the code, then of the blocks.
    pub findings: Vec<AccessFinding>,
    /// How many findings there were beyond those kept.
    pub more_findings: u64,
    /// What could not be checked, and why.
    pub not_checked: Vec<String>,
    /// What the kernel printed.
    pub printed: String,
    pub trace: Vec<String>,
    /// How much work it was.
    pub statistics: EmulationStatistics,
}

/// Why a launch came to no end.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum LaunchError {
    /// The launch does not fit the kernel: a wrong number of arguments, an empty grid, too much shared memory.
    #[error("{0}")]
    Refused(String),
    /// An assertion of the kernel failed.
    #[error("assertion failed: {message} ({thread})")]
    Assertion {
        /// What the assertion says, and where it is written.
        message: String,
        thread: ThreadPlace,
    },
    /// The kernel stopped itself.
    #[error("trap at {place} ({thread})")]
    Trap { place: CodePlace, thread: ThreadPlace },
    /// It did not end.
    #[error("no block came to its end within {steps} instructions of warps; {waiting}")]
    Endless { steps: u64, waiting: String },
    /// It takes longer than it may.
    #[error("the launch did not end within {} s", .0.as_secs_f64())]
    Late(Duration),
    /// It needs more memory than the machine gives.
    #[error("{0}")]
    Exhausted(String),
}
