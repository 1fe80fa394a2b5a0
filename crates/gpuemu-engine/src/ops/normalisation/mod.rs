//! Norms and softmaxes: rows divided by what they add up to.

pub(in crate::ops) mod batch_norm;
pub(in crate::ops) mod fused_add;
pub(in crate::ops) mod groupnorm;
pub(in crate::ops) mod l2norm;
pub(in crate::ops) mod layernorm;
pub(in crate::ops) mod log_softmax;
pub(in crate::ops) mod rmsnorm;
pub(in crate::ops) mod softmax;
pub(in crate::ops) mod softmax_in_place;

use super::BuiltIn;

/// The ops of this group.
pub(super) fn ops() -> Vec<BuiltIn> {
    vec![
        batch_norm::op(),
        fused_add::layernorm_op(),
        fused_add::rmsnorm_op(),
        groupnorm::instance_op(),
        groupnorm::op(),
        l2norm::op(),
        layernorm::op(),
        log_softmax::op(),
        rmsnorm::op(),
        softmax::op(),
        softmax_in_place::op(),
    ]
}
