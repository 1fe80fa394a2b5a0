//! To narrow formats and back.

mod float8;
mod integer4;
mod integer8;
mod scale;

use super::BuiltIn;

/// The ops of this group.
pub(super) fn ops() -> Vec<BuiltIn> {
    let mut ops = vec![integer4::quantizer(), integer4::dequantizer()];
    ops.extend(integer8::ops());
    ops.extend(float8::ops());
    ops
}
