//! Attention over packed, paged and split keys, and what prepares its inputs.

use crate::implementations::Family;

/// The ops of this group and their kernels.
pub fn families() -> Vec<Family> {
    Vec::new()
}
