//! The approximated instructions of f64. The unit sees the upper word alone: the sign, the exponent and 20 bits of the
//! mantissa; 20 bits come back, and the lower word is 0.

use super::unit::{Rcp, Rsqrt, answer};
use crate::numerics::{FloatKind, FloatRules, Rounding};

const SIGN: u64 = 1 << 63;
const INFINITY: u64 = 0x7FF0_0000_0000_0000;
const NAN: u64 = 0x7FFF_FFFF_0000_0000;

/// What the unit sees: a NaN with nothing in its upper word is infinite to it.
const fn upper(bits: u64) -> u64 {
    bits >> 32 << 32
}

/// The mantissa of the upper word as the unit is given it.
const fn mantissa(bits: u64) -> u32 {
    ((bits >> 32) as u32 & 0xF_FFFF) << 3
}

/// An f32 in (1/2, 2) moved by an exponent; 20 bits of its mantissa are kept. Out of range it is 0 or infinite.
fn widened(bits: u32, exponent: i32) -> u64 {
    let field = (bits >> 23) as i32 - 127 + 1023 + exponent;
    match field {
        ..=0 => 0,
        1..2047 => (field as u64) << 52 | u64::from(bits & 0x007F_FFFF) >> 3 << 32,
        _ => INFINITY,
    }
}

/// MUFU.RCP64H: `rcp.approx.ftz.f64`
pub fn rcp(bits: u64) -> u64 {
    let bits = upper(bits);
    let field = (bits >> 52 & 2047) as i32;
    if bits & !SIGN > INFINITY {
        return NAN;
    }
    let magnitude = match field {
        0 => INFINITY,
        2047 => 0,
        _ => widened(answer::<Rcp>(0x3F80_0000 | mantissa(bits)), 1023 - field),
    };
    magnitude | bits & SIGN
}

/// MUFU.RSQ64H: `rsqrt.approx.ftz.f64`
pub fn rsqrt_flushed(bits: u64) -> u64 {
    let bits = upper(bits);
    let field = (bits >> 52 & 2047) as i32;
    let exponent = field - 1023;
    match field {
        _ if bits & !SIGN > INFINITY => NAN,
        0 => INFINITY | bits & SIGN,
        _ if bits & SIGN != 0 => NAN,
        2047 => 0,
        _ => {
            let binade = if exponent & 1 == 1 { 0x4000_0000 } else { 0x3F80_0000 };
            widened(answer::<Rsqrt>(binade | mantissa(bits)), -(exponent >> 1))
        }
    }
}

/// `rsqrt.approx.f64`: ptxas refines the answer of the unit by one step of third order.
pub fn rsqrt(bits: u64) -> u64 {
    const RULES: FloatRules =
        FloatRules { kind: FloatKind::F64, rounding: Rounding::Nearest, flush: false, saturate: false, relu: false };
    let value = f64::from_bits(bits);
    if value.is_nan() {
        return RULES.kind.nan_of(&[bits]);
    }
    if value == 0.0 {
        return INFINITY | bits & SIGN;
    }
    if value < 0.0 {
        return RULES.kind.nan();
    }
    if value == f64::INFINITY {
        return 0;
    }
    let refined = |value: f64| {
        let start = f64::from_bits(rsqrt_flushed(value.to_bits()));
        let error = value.mul_add(-(start * start), 1.0);
        error.mul_add(0.375, 0.5).mul_add(start * error, start)
    };
    // Outside of this range it is scaled, 2^54 and 2^27.
    let upper = (bits >> 32) as u32;
    let result = if upper.wrapping_sub(0x0010_0000) >= 0x7FE0_0000 {
        refined(value * 18_014_398_509_481_984.0) * 134_217_728.0
    } else {
        refined(value)
    };
    result.to_bits()
}
