//! Elements moved, chosen and counted by index.

mod accumulate;
mod count;
mod histogram;
mod lookup;
mod movement;
pub(in crate::ops) mod order;
mod overwrite;

use super::{BuiltIn, Expectation};

/// The ops of this group.
pub(super) fn ops() -> Vec<BuiltIn> {
    let families = [
        accumulate::ops(),
        count::ops(),
        histogram::ops(),
        lookup::ops(),
        movement::ops(),
        order::ops(),
        overwrite::ops(),
    ];
    families.into_iter().flatten().collect()
}

/// What the bound of an op says that only moves numbers.
pub(in crate::ops) const COPIED: &str = "0: numbers are copied, never computed";

/// Elements that are copied: every bit of them is known.
pub(in crate::ops) fn copied(values: impl IntoIterator<Item = f64>) -> Expectation {
    let values: Vec<f64> = values.into_iter().collect();
    Expectation { delta: vec![0.0; values.len()], values, excuses: Vec::new() }
}
