//! Attention in its forms, and what prepares its inputs.

mod backward;
mod bias;
mod cache;
mod decode;
pub(in crate::ops) mod dense;
mod head;
mod merge;
mod output;
pub(in crate::ops) mod rope;
mod rope_cached;
mod row;
mod tile;
mod varlen;
mod weights;

use super::BuiltIn;

/// The ops of this group.
pub(super) fn ops() -> Vec<BuiltIn> {
    vec![
        dense::op(),
        backward::op(),
        bias::op(),
        varlen::op(),
        decode::decode_attention(),
        decode::paged_attention(),
        merge::op(),
        cache::op(),
        rope::op(),
        rope_cached::op(),
        rope_cached::in_place(),
    ]
}
