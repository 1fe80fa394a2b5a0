//! Routing, permutation and combination of experts.

mod dispatch;
mod fused;
mod routing;

use crate::implementations::Family;

/// The ops of this group and their kernels.
pub fn families() -> Vec<Family> {
    [dispatch::families(), fused::families(), routing::families()].into_iter().flatten().collect()
}
