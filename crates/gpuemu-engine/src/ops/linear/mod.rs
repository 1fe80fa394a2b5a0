//! Products of matrices, dense, batched, grouped and quantised.

pub(in crate::ops) mod matmul;
pub(in crate::ops) mod products;

use super::BuiltIn;

/// The ops of this group.
pub(super) fn ops() -> Vec<BuiltIn> {
    vec![matmul::op()]
}
