//! Sums, extremes and prefixes along a dim.

pub(in crate::ops) mod cumsum;
pub(in crate::ops) mod max;
pub(in crate::ops) mod mean;
pub(in crate::ops) mod sum;

use super::BuiltIn;

/// The ops of this group.
pub(super) fn ops() -> Vec<BuiltIn> {
    vec![cumsum::op(), max::op(), mean::op(), sum::op()]
}
