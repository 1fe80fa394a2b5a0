//! Gradients of other ops, given the upstream gradient.

pub(in crate::ops) mod activation;
pub(in crate::ops) mod cross_entropy;
pub(in crate::ops) mod layernorm;
pub(in crate::ops) mod rmsnorm;
pub(in crate::ops) mod softmax;
mod weight_gradient;

use super::BuiltIn;

/// The ops of this group.
pub(super) fn ops() -> Vec<BuiltIn> {
    vec![
        activation::gelu_op(),
        activation::silu_op(),
        activation::swiglu_op(),
        cross_entropy::op(),
        layernorm::op(),
        rmsnorm::op(),
        softmax::logarithm_op(),
        softmax::op(),
    ]
}

/// NaN beside the value: where a factor of an infinity may have been flushed to zero.
const NAN_TOO: super::ExcuseKind = super::ExcuseKind::Overflow { nan: true, infinite: false, value: None };
