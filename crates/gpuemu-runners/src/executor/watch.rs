//! What is looked for while a callable runs, and what was seen.

use gpuemu_engine::runner::GuardDamage;
use serde::{Deserialize, Serialize};

use crate::kernels::findings::SeenLaunch;

/// How the memory of a call is watched. A callable that is watched must return arrays, and nothing that merely
/// becomes one when it is looked at.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Watch {
    /// What freed memory holds when the callable starts.
    pub poison: u8,
    /// The outputs that are expected, by name.
    pub outputs: Vec<String>,
    /// Those of them that are inputs, written over: what these hold after the call is the result.
    pub in_place: Vec<String>,
    /// Bytes of each output that is expected.
    pub output_bytes: Vec<usize>,
    /// The keyword by which it is given memory for its outputs; without one it returns them.
    pub out: Option<String>,
    /// Whether the inputs replace those of the last call that was watched, at the same addresses. Otherwise they lie
    /// where those of the last such calls did not.
    pub refill: bool,
}

/// Something that a callable did to memory, or did not do. Outputs have the names that the callable gave them, or their places.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(tag = "check", rename_all = "snake_case")]
pub enum Seen {
    /// It wrote over an input.
    InputModified {
        input: String,
        /// Elements of its storage that changed.
        elements: usize,
        first: usize,
    },
    /// It wrote outside of an input.
    OutOfBounds {
        input: String,
        #[serde(flatten)]
        damage: GuardDamage,
    },
    /// An output lies in the memory of an input.
    Aliasing { output: String, input: String },
    /// An output of the call before changed.
    OutputOverwritten { output: String },
    /// It returned without having run the kernel.
    NotLaunched {
        /// What the kernel raised, if it was called at all.
        error: Option<String>,
    },
    /// It left its thread computing in another way than before.
    FloatEnvironment { differences: Vec<String> },
    /// It raised, after what was seen before this.
    Raised { text: String },
    /// It launched a kernel in the PTX machine.
    Launch(SeenLaunch),
}
