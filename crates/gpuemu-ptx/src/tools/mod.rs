//! NVIDIA's tools, where they are installed: what the assembler makes of PTX, and what fits on a multiprocessor.
//!
//! Nothing here is needed. Without a tool, what it would measure is reported as not measured.

pub mod cuobjdump;
pub(crate) mod measure;
pub mod nvdisasm;
pub mod occupancy;
pub(crate) mod process;
pub mod ptxas;
pub mod sass;
mod search;
mod toolchain;

pub use gpuemu_model::artifact::ToolSearch;
pub use measure::{Assembled, ToolMeasures};
pub use search::python_program;
pub use toolchain::{Tool, Toolchain};
