//! Routing, permutation and combination of a mixture of experts.

use super::BuiltIn;

/// The ops of this group.
pub(super) fn ops() -> Vec<BuiltIn> {
    vec![]
}
