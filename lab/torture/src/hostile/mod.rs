//! Hostile input: for every place at which bytes of others are read, a function that reads them as gpuemu does, and goes on
//! with what it has read. It panics where gpuemu does, and where what comes out contradicts what went in.

mod config;
mod connection;
mod frame;
mod inputs;
mod mutation;
mod ptx;
mod report;
mod request;
mod response;
mod shared_memory;
mod tensor;
mod workplace;

pub use inputs::{folder, inputs};
pub use mutation::{NUMBERS, mutated};

/// A place at which bytes of others are read.
pub struct Target {
    pub name: &'static str,
    pub run: fn(&[u8]),
    /// Words that mean something there.
    pub words: &'static [&'static str],
    /// Executions of the full trial, in thousands: what is slow is tried less often.
    pub thousands: u64,
    /// Executions of the short trial, in thousands.
    pub thousands_short: u64,
}

pub const TARGETS: &[Target] = &[
    frame::TARGET,
    connection::TARGET,
    request::TARGET,
    response::TARGET,
    tensor::TARGET,
    config::TARGET,
    ptx::TARGET,
    report::TARGET,
    shared_memory::TARGET,
];

pub fn target(name: &str) -> Option<&'static Target> {
    TARGETS.iter().find(|target| target.name == name)
}
