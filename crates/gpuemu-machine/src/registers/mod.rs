//! The registers of a warp: 32 lanes each, one beside the other, and instructions that only touch registers.

pub mod file;
pub mod forms;
pub mod pure;
pub mod simd;

pub use file::{LANES, RegisterFile, Slot};
pub use pure::{Execute, OperandShape, Pure, PureForm, RegisterWidth};
pub use simd::Level;
