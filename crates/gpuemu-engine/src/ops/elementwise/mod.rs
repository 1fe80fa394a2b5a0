//! Ops that compute each element on its own.

pub(in crate::ops) mod elu;
pub(in crate::ops) mod gelu;
pub(in crate::ops) mod leaky_relu;
pub(in crate::ops) mod relu;
pub(in crate::ops) mod sigmoid;
pub(in crate::ops) mod silu;
pub(in crate::ops) mod swiglu;
pub(in crate::ops) mod tanh;

use super::BuiltIn;

/// The ops of this group.
pub(super) fn ops() -> Vec<BuiltIn> {
    vec![
        elu::op(),
        gelu::erf_op(),
        gelu::tanh_op(),
        leaky_relu::op(),
        relu::op(),
        sigmoid::op(),
        silu::op(),
        swiglu::op(),
        tanh::op(),
    ]
}
