//! Structural properties of ops, which the metamorphic pass turns into new cases.

use serde::Serialize;

/// A property that holds for every input of an op.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Property {
    /// Rows of the output sum to one along the last axis.
    RowStochastic,
    /// Reordering the leading dims of `...` reorders the output alike.
    PermutationEquivariant,
    /// Each entry of the leading dims of `...` is computed on its own.
    BatchInvariant,
    /// Adding a constant to the named input changes nothing.
    ShiftInvariant { input: &'static str },
    /// Scaling the named input by c scales the output by c^degree.
    Homogeneous { input: &'static str, degree: i32 },
    /// Linear in the named input: small whole numbers make every partial sum exact.
    Linear { input: &'static str },
    /// Values of the named inputs behind a mask (a masked-out key) never reach the output.
    MaskedOutIgnored {
        mask: &'static str,
        /// The inputs behind it.
        inputs: &'static [&'static str],
    },
}

impl Property {
    /// A short name for reports.
    pub fn name(&self) -> &'static str {
        match self {
            Property::RowStochastic => "row-stochastic",
            Property::PermutationEquivariant => "permutation-equivariant",
            Property::BatchInvariant => "batch-invariant",
            Property::ShiftInvariant { .. } => "shift-invariant",
            Property::Homogeneous { .. } => "homogeneous",
            Property::Linear { .. } => "linear",
            Property::MaskedOutIgnored { .. } => "masked-out values ignored",
        }
    }
}
