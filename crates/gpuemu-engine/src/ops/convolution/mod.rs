//! Convolutions, pools and scans along a sequence.

mod causal_conv1d;
mod conv;
mod dot;
mod pool;
mod selective_scan;
mod selective_state;

use super::BuiltIn;

/// The ops of this group.
pub(super) fn ops() -> Vec<BuiltIn> {
    vec![
        causal_conv1d::op(),
        causal_conv1d::update_op(),
        conv::conv1d(),
        conv::conv2d(),
        pool::avg_pool1d(),
        pool::avg_pool2d(),
        pool::max_pool1d(),
        pool::max_pool2d(),
        selective_scan::op(),
        selective_scan::update_op(),
    ]
}
