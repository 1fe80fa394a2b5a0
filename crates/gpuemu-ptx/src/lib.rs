//! Compiled kernels: PTX is read, measured and checked here.

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
