//! Norms and softmaxes: rows divided by what they add up to.

pub(in crate::ops) mod l2norm;
pub(in crate::ops) mod layernorm;
pub(in crate::ops) mod log_softmax;
pub(in crate::ops) mod rmsnorm;
pub(in crate::ops) mod softmax;

use super::BuiltIn;

/// The ops of this group.
pub(super) fn ops() -> Vec<BuiltIn> {
    vec![l2norm::op(), layernorm::op(), log_softmax::op(), rmsnorm::op(), softmax::op()]
}
