//! Attention in its forms, and what prepares its inputs.

pub(in crate::ops) mod dense;
pub(in crate::ops) mod rope;

use super::BuiltIn;

/// The ops of this group.
pub(super) fn ops() -> Vec<BuiltIn> {
    vec![dense::op(), rope::op()]
}
