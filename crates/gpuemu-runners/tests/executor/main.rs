//! Scripts and callables in a real Python: those that behave, and those that do not.
#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stderr, reason = "tests fail by panicking")]

mod callables;
mod memory;
mod misbehaviour;
mod outputs;
mod pool;
mod project;
mod scripts;
