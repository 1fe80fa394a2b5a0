//! Kernels that move, choose and count by index.

use crate::implementations::Family;

/// The ops of this group and their kernels.
pub fn families() -> Vec<Family> {
    Vec::new()
}
