//! Ops that compute each element on its own.

pub(in crate::ops) mod clamp;
pub(in crate::ops) mod dropout;
pub(in crate::ops) mod elu;
pub(in crate::ops) mod exponentials;
pub(in crate::ops) mod geglu;
pub(in crate::ops) mod gelu;
pub(in crate::ops) mod hardswish;
pub(in crate::ops) mod leaky_relu;
pub(in crate::ops) mod mish;
pub(in crate::ops) mod products;
pub(in crate::ops) mod relu;
pub(in crate::ops) mod relu_in_place;
pub(in crate::ops) mod roots;
pub(in crate::ops) mod selection;
pub(in crate::ops) mod sigmoid;
pub(in crate::ops) mod silu;
pub(in crate::ops) mod softplus;
pub(in crate::ops) mod storage;
pub(in crate::ops) mod sums;
pub(in crate::ops) mod swiglu;
pub(in crate::ops) mod tanh;

use super::BuiltIn;

/// The ops of this group.
pub(super) fn ops() -> Vec<BuiltIn> {
    vec![
        clamp::op(),
        dropout::op(),
        elu::op(),
        exponentials::exp_op(),
        exponentials::log_op(),
        geglu::op(),
        gelu::erf_op(),
        gelu::tanh_op(),
        hardswish::op(),
        leaky_relu::op(),
        mish::op(),
        products::divide_op(),
        products::multiply_in_place_op(),
        products::multiply_op(),
        products::reciprocal_op(),
        relu::op(),
        relu_in_place::op(),
        roots::inverse_root_op(),
        roots::root_op(),
        selection::op(),
        sigmoid::op(),
        silu::op(),
        softplus::op(),
        sums::add_in_place_op(),
        sums::add_op(),
        sums::bias_op(),
        sums::subtract_op(),
        swiglu::op(),
        tanh::op(),
    ]
}
