//! Elements moved, chosen and counted by index.

use super::BuiltIn;

/// The ops of this group.
pub(super) fn ops() -> Vec<BuiltIn> {
    vec![]
}
