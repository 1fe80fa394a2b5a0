//! Compiled kernels as ops: a launch table says how a case becomes a launch, and a runner launches it in the PTX machine.

mod facts;
pub mod findings;
pub mod kernel;
pub mod runner;

pub use kernel::{CompiledKernel, PtxSource};
pub use runner::KernelRunner;
