//! Non-tensor parameters: `eps`, `causal`, `scale` and the like.

pub use gpuemu_model::case::{Parameters, Scalar};
use serde::Serialize;

/// A parameter of an op.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ParameterSpec {
    /// Its name, as the frameworks spell it.
    pub name: String,
    pub default: Scalar,
    /// Values that cases are generated with; only the default if empty.
    pub choices: Vec<Scalar>,
}
