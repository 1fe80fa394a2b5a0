//! Convolutions, pools and scans along a sequence.

use super::BuiltIn;

/// The ops of this group.
pub(super) fn ops() -> Vec<BuiltIn> {
    vec![]
}
