//! Sums, products, extremes and prefixes along a dim.

pub(in crate::ops) mod cumprod;
pub(in crate::ops) mod cumsum;
pub(in crate::ops) mod extreme_index;
pub(in crate::ops) mod logical;
pub(in crate::ops) mod logsumexp;
pub(in crate::ops) mod max;
pub(in crate::ops) mod mean;
pub(in crate::ops) mod min;
pub(in crate::ops) mod prod;
pub(in crate::ops) mod sum;
pub(in crate::ops) mod sum_columns;
pub(in crate::ops) mod var;

use super::BuiltIn;

/// The ops of this group.
pub(super) fn ops() -> Vec<BuiltIn> {
    vec![
        cumprod::op(),
        cumsum::op(),
        extreme_index::largest_op(),
        extreme_index::smallest_op(),
        logical::all_op(),
        logical::any_op(),
        logsumexp::op(),
        max::op(),
        mean::op(),
        min::op(),
        prod::op(),
        sum::op(),
        sum_columns::op(),
        var::op(),
    ]
}
