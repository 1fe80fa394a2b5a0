//! The PTX machine: compiled kernels run on the processor at hand, bit for bit as on the chip, every access checked.
//!
//! A kernel's PTX comes in as [`gpuemu_ptx::Source`]; [`Program::decode`] turns an entry of it into slots, registers and
//! steps (`decode`). [`Program::launch`] runs it over a grid on memory that the caller describes as a [`Launch`]
//! (`execution`), and gives back an [`Outcome`]: the memory, what was printed, and findings as data (`checks`). What an
//! instruction computes is in `registers`, `numerics`, `approximations` (functions as the chip approximates them) and
//! `tensor_core`; `memory` is what it reads and writes. `conformance` compares all of it with recordings of a chip.
//! Open `execution/launch.rs` first.

pub mod approximations;
pub mod checks;
pub mod conformance;
pub mod decode;
pub mod execution;
pub mod memory;
pub mod numerics;
pub mod parameter_bytes;
pub mod registers;
pub mod tensor_core;

pub use execution::{
    Argument, BlockOrder, Buffer, Launch, LaunchError, LaunchOptions, Outcome, POISON, Parameter, Program, Role, Trace,
};
