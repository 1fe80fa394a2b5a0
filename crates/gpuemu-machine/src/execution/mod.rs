//! The machine that runs compiled kernels: warps in lockstep, blocks over all cores, every access checked.

mod asynchronous;
mod atomics;
mod block;
mod copies;
mod execute;
mod global_access;
mod grid;
pub mod launch;
mod local;
mod matrices;
mod own_access;
mod print;
pub mod program;
mod shared_access;
mod system;
mod together;
mod trace;
mod transfer;
mod warp;
mod worker;

pub use launch::{Argument, BlockOrder, Buffer, Launch, LaunchError, LaunchOptions, Outcome, POISON, Role, Trace};
pub use program::{Parameter, Program};
