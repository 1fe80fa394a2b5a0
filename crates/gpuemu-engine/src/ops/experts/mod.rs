//! Routing, permutation and combination of a mixture of experts.

mod align;
mod dispatch;
mod fused;
mod routing;

use super::BuiltIn;

/// The ops of this group.
pub(super) fn ops() -> Vec<BuiltIn> {
    let families = [align::ops(), dispatch::ops(), fused::ops(), routing::ops()];
    families.into_iter().flatten().collect()
}

/// Which flat entries each expert gets, in their own order.
fn by_expert(ids: &[f64], experts: usize) -> Vec<Vec<usize>> {
    let mut entries = vec![Vec::new(); experts];
    for (entry, expert) in ids.iter().enumerate() {
        if let Some(list) = entries.get_mut(*expert as usize) {
            list.push(entry);
        }
    }
    entries
}
