//! Memory of a launch: where things lie, and the bytes of global memory.

pub mod address;
pub mod cells;
pub mod global;
pub mod written;

pub use address::{Space, Window};
pub use cells::Cells;
pub use global::{Allocation, Bytes, GlobalMemory};
pub use written::WrittenMap;

/// Copies bytes to as many; lengths that are usual without a call.
#[inline(always)]
pub fn copy(into: &mut [u8], from: &[u8]) {
    match from.len() {
        4 => into[..4].copy_from_slice(&from[..4]),
        8 => into[..8].copy_from_slice(&from[..8]),
        16 => into[..16].copy_from_slice(&from[..16]),
        64 => into[..64].copy_from_slice(&from[..64]),
        128 => into[..128].copy_from_slice(&from[..128]),
        512 => into[..512].copy_from_slice(&from[..512]),
        _ => into.copy_from_slice(from),
    }
}
