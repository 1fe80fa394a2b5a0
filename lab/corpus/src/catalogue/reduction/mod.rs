//! Reductions beyond sums.

mod extremes;
mod logical;
mod moments;
mod products;

use crate::implementations::Family;

/// The ops of this group and their kernels.
pub fn families() -> Vec<Family> {
    let parts = [extremes::families(), logical::families(), moments::families(), products::families()];
    parts.into_iter().flatten().collect()
}
