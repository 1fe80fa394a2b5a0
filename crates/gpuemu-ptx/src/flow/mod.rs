//! How control and values move through the code of a function.

pub mod control;
pub mod divergence;
mod dominance;
pub mod graph;
pub mod loops;
pub mod uses;
pub mod values;

use crate::code::Code;

pub use control::ControlDependence;
pub use divergence::Divergence;
pub use graph::Graph;
pub use loops::Loops;
pub use uses::{Uses, Version};
pub use values::{Value, Values};

/// The shape of a function.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FlowSummary {
    /// Blocks of code that are entered only at their first instruction.
    pub blocks: u64,
    pub loops: u64,
    /// How deep loops are nested.
    pub loop_depth: u64,
    /// Whether jumps by table were too many to be followed: the other figures are too small.
    pub incomplete: bool,
}

/// The shape of a function.
pub fn summary(code: &Code<'_, '_>) -> FlowSummary {
    let graph = Graph::of(code);
    let loops = Loops::of(&graph);
    FlowSummary {
        blocks: graph.len() as u64,
        loops: loops.count,
        loop_depth: loops.depth,
        incomplete: graph.is_incomplete(),
    }
}
