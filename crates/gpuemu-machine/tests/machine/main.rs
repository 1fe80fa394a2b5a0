//! The machine: kernels written for one fault each, launches that must be refused, and mutants of real kernels.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests fail by panicking")]

mod behaviour;
mod faults;
mod launching;
mod limits;
mod meeting;
mod mutants;
mod refusals;
