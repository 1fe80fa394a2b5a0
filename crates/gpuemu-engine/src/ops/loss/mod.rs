//! Losses.

pub(in crate::ops) mod cross_entropy;

use super::BuiltIn;

/// The ops of this group.
pub(super) fn ops() -> Vec<BuiltIn> {
    vec![cross_entropy::op()]
}
