//! Products of matrices: batched, grouped, quantised.

use crate::implementations::Family;

/// The ops of this group and their kernels.
pub fn families() -> Vec<Family> {
    Vec::new()
}
