//! Arguments that several subcommands take.

pub mod cases;
pub mod kernels;
pub mod runner;
