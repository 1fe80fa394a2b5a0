//! Memory of a launch: where things lie, and the bytes of global memory.

pub mod address;
pub mod cells;
pub mod global;
pub mod written;

pub use address::{Space, Window};
pub use cells::Cells;
pub use global::{Allocation, Bytes, GlobalMemory};
pub use written::WrittenMap;
