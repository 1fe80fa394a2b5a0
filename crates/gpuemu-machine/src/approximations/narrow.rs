//! The approximated instructions of f16 and bf16: widened, given to the unit, and cut, not rounded.

use super::unit::{Ex2, Tanh, answer};
use crate::numerics::half::{NAN, widen_bf16, widen_f16};

/// Cuts an f32 to f16; what is too large is infinite.
#[inline(always)]
fn cut_f16(bits: u32) -> u16 {
    let sign = (bits >> 16) as u16 & 0x8000;
    let magnitude = bits & 0x7FFF_FFFF;
    let field = magnitude >> 23;
    let normal = (magnitude >> 13).wrapping_sub(0x1_C000);
    let subnormal = (magnitude & 0x007F_FFFF | 0x0080_0000) >> 126_u32.saturating_sub(field).min(31);
    let cut = match field {
        0..113 => subnormal,
        113..143 => normal,
        _ => 0x7C00,
    };
    if magnitude > 0x7F80_0000 { NAN } else { sign | cut as u16 }
}

/// Cuts an f32 to bf16.
#[inline(always)]
const fn cut_bf16(bits: u32) -> u16 {
    if bits & 0x7FFF_FFFF > 0x7F80_0000 { NAN } else { (bits >> 16) as u16 }
}

/// `ex2.approx.f16`
#[inline(always)]
pub fn ex2_f16(bits: u16) -> u16 {
    cut_f16(answer::<Ex2>(widen_f16(bits).to_bits()))
}

/// `ex2.approx.ftz.bf16`
#[inline(always)]
pub fn ex2_bf16(bits: u16) -> u16 {
    cut_bf16(answer::<Ex2>(widen_bf16(bits).to_bits()))
}

/// `tanh.approx.f16`
#[inline(always)]
pub fn tanh_f16(bits: u16) -> u16 {
    cut_f16(answer::<Tanh>(widen_f16(bits).to_bits()))
}

/// `tanh.approx.bf16`
#[inline(always)]
pub fn tanh_bf16(bits: u16) -> u16 {
    cut_bf16(answer::<Tanh>(widen_bf16(bits).to_bits()))
}
