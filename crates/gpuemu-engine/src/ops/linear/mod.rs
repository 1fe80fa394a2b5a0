//! Products of matrices, dense, batched, grouped and quantised.

mod addmm;
mod batched;
mod float8;
mod integer;
mod layer;
pub(in crate::ops) mod matmul;
mod product;
pub(in crate::ops) mod tiles;
mod weight_only;

use super::BuiltIn;

/// The ops of this group.
pub(super) fn ops() -> Vec<BuiltIn> {
    let mut ops = vec![
        matmul::op(),
        addmm::op(),
        batched::bmm(),
        batched::grouped(),
        float8::rowwise(),
        float8::tensorwise(),
        float8::blockwise(),
        integer::plain(),
        integer::with_scales(),
        weight_only::eight_bits(),
        weight_only::four_bits(),
    ];
    ops.extend(layer::ops());
    ops
}
