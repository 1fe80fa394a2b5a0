//! Compiled kernels as text: PTX is read, measured, checked against rules and compared, and compilers are run for it.
//!
//! A [`Source`] is a file of PTX. `syntax` parses it; `code` resolves its names and `flow` finds branches, loops and
//! values. On these stand `metrics` (what a kernel is made of), `lint` (rules) and `diff` (two artifacts compared).
//! `compile` runs Triton's and CUDA's compilers, `tools` NVIDIA's programs where they are installed, and `inspect` puts
//! all of it together for one kernel: open `inspect.rs` first. The machine that runs PTX is `gpuemu-machine`.

pub mod code;
pub mod compile;
pub mod diff;
pub mod flow;
pub mod inspect;
pub mod lint;
pub mod metrics;
pub mod source;
pub mod special_registers;
pub mod syntax;
pub mod tools;

pub use source::{PtxError, Source};
