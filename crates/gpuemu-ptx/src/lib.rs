//! Compiled kernels: PTX is read, measured and checked here, and run on the processor at hand.

pub mod approximations;
pub mod checks;
pub mod code;
pub mod compile;
pub mod conformance;
pub mod decode;
pub mod diff;
pub mod flow;
pub mod inspect;
pub mod lint;
pub mod machine;
pub mod memory;
pub mod metrics;
pub mod numerics;
pub mod parameter_bytes;
pub mod registers;
pub mod source;
pub mod special_registers;
pub mod syntax;
pub mod tensor_core;
pub mod tools;

pub use source::{PtxError, Source};
