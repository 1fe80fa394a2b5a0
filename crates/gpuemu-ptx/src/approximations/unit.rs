//! The special-function unit (MUFU) of the chip, in whole numbers.
//!
//! Each function is cut into segments; in each of them three products are added, one of them with a square that is
//! cut off below, and the sum is cut to 24 bits. Subnormal numbers are zero here, given and made. The form of the
//! arithmetic was first documented for an older unit by envytools; see the page on emulation.

use super::coefficients::{EX2, LG2, RCP, RSQRT, SIN, SQRT, TANH, TANH_BINADES};

const INFINITY: u32 = 0x7F80_0000;
const NAN: u32 = 0x7FFF_FFFF;
const SIGN: u32 = 0x8000_0000;
const FRACTION: u32 = 0x007F_FFFF;

/// The square of 17 bits as the unit forms it: each partial product is cut below bit 18, the sum below bit 1.
#[inline(always)]
fn square(low: u32) -> u32 {
    let mut sum = 0;
    // The partial products of the lowest two bits are cut off whole.
    let mut bit = 2;
    while bit < 17 {
        sum += (low >> (18 - bit)) & 0_u32.wrapping_sub(low >> bit & 1);
        bit += 1;
    }
    sum >> 1
}

/// How the rows of a function are added up.
struct Curve {
    value_shift: u32,
    slope_falls: bool,
    curvature_falls: bool,
    constant: u64,
    one: u32,
}

impl Curve {
    /// The sum of a row, `one` bits behind the point.
    #[inline(always)]
    fn sum(&self, row: u64, low: u32) -> u64 {
        let value = (row & 0x3FF_FFFF) << self.value_shift;
        let slope = (row >> 26 & 0xF_FFFF) * u64::from(low);
        let curvature = (row >> 46) * u64::from(square(low));
        let sloped = if self.slope_falls { value.wrapping_sub(slope) } else { value.wrapping_add(slope) };
        let curved = if self.curvature_falls { sloped.wrapping_sub(curvature) } else { sloped.wrapping_add(curvature) };
        curved.wrapping_add(self.constant)
    }

    /// The pattern of that sum in f32.
    #[inline(always)]
    fn at(&self, row: u64, low: u32) -> u32 {
        cut(self.sum(row, low), self.one)
    }
}

/// A number with so many bits behind the point, cut to 24 bits, as a pattern of f32. It must be below 2^52.
#[inline(always)]
fn cut(number: u64, behind: u32) -> u32 {
    // Put behind the point of 2^52 the number is exact in f64, which normalises it.
    let magic = f64::from_bits(0x4330_0000_0000_0000);
    let float = (f64::from_bits(number | 0x4330_0000_0000_0000) - magic).to_bits();
    let bits = ((float >> 29) as u32).wrapping_sub((1023 - 127 + behind) << 23);
    if number == 0 { 0 } else { bits }
}

/// Moves the exponent of a positive number; out of range it is 0 or infinite.
#[inline(always)]
fn scaled(bits: u32, exponent: i32) -> u32 {
    let field = (bits >> 23) as i32 + exponent;
    let moved = (field as u32) << 23 | bits & FRACTION;
    if field <= 0 {
        0
    } else if field >= 255 {
        INFINITY
    } else {
        moved
    }
}

#[inline(always)]
const fn is_nan(bits: u32) -> bool {
    bits & !SIGN > INFINITY
}

/// The segment of a 23-bit fraction among 64, and the rest.
#[inline(always)]
const fn split(fraction: u32) -> (usize, u32) {
    ((fraction >> 17 & 63) as usize, fraction & 0x1_FFFF)
}

/// 2^x for a fraction of 23 bits: a number in [1, 2).
#[inline(always)]
pub(super) fn power_of_fraction(fraction: u32) -> u32 {
    const CURVE: Curve =
        Curve { value_shift: 13, slope_falls: false, curvature_falls: false, constant: 0x77E2, one: 38 };
    let (segment, low) = split(fraction);
    CURVE.at(EX2[segment], low)
}

/// MUFU.EX2
#[inline(always)]
pub fn ex2(bits: u32) -> u32 {
    let magnitude = f32::from_bits(bits & !SIGN);
    // Beyond 200 every result is 0 or infinite.
    let fixed = (if magnitude < 200.0 { magnitude * 8_388_608.0 } else { 1_677_721_600.0 }) as i32;
    // The unit negates by inverting, except for whole numbers.
    let negated = if fixed as u32 & FRACTION != 0 { !fixed } else { -fixed };
    let fixed = if bits & SIGN != 0 { negated } else { fixed };
    let power = scaled(power_of_fraction(fixed as u32 & FRACTION), fixed >> 23);
    if is_nan(bits) { NAN } else { power }
}

/// 1/x for the mantissa of a number in [1, 2): a number in (1/2, 1].
#[inline(always)]
pub(super) fn reciprocal_of_mantissa(mantissa: u32) -> u32 {
    const CURVE: Curve =
        Curve { value_shift: 13, slope_falls: true, curvature_falls: false, constant: 0x47E7, one: 39 };
    let row = RCP[(mantissa >> 16 & 127) as usize];
    let low = mantissa & 0xFFFF;
    // Twice as many segments, half as long: the square still takes 17 bits.
    let value = (row & 0x3FF_FFFF) << CURVE.value_shift;
    let slope = (row >> 26 & 0xF_FFFF) * u64::from(low);
    let curvature = (row >> 46) * u64::from(square(low << 1));
    cut(value.wrapping_sub(slope).wrapping_add(curvature).wrapping_add(CURVE.constant), CURVE.one)
}

/// MUFU.RCP
#[inline(always)]
pub fn rcp(bits: u32) -> u32 {
    let field = (bits >> 23 & 255) as i32;
    let finite = scaled(reciprocal_of_mantissa(bits & FRACTION), 127 - field);
    let magnitude = match field {
        0 => INFINITY,
        255 => 0,
        _ => finite,
    };
    if is_nan(bits) { NAN } else { magnitude | bits & SIGN }
}

/// 1/√x for the mantissa of a number in [1, 2), or in [2, 4) where the exponent is odd.
#[inline(always)]
pub(super) fn reciprocal_root_of_mantissa(mantissa: u32, odd: bool) -> u32 {
    const CURVE: Curve =
        Curve { value_shift: 14, slope_falls: true, curvature_falls: false, constant: 0x7FFF, one: 40 };
    let (segment, low) = split(mantissa);
    let root = CURVE.at(RSQRT[segment + if odd { 64 } else { 0 }], low);
    if mantissa == 0 && !odd { 0x3F80_0000 } else { root }
}

/// MUFU.RSQ
#[inline(always)]
pub fn rsqrt(bits: u32) -> u32 {
    let field = (bits >> 23 & 255) as i32;
    let exponent = field - 127;
    let finite = scaled(reciprocal_root_of_mantissa(bits & FRACTION, exponent & 1 == 1), -(exponent >> 1));
    let positive = if field == 255 { 0 } else { finite };
    let signed = if bits & SIGN != 0 { NAN } else { positive };
    let any = if field == 0 { INFINITY | bits & SIGN } else { signed };
    if is_nan(bits) { NAN } else { any }
}

/// √x for a mantissa, as above.
#[inline(always)]
pub(super) fn root_of_mantissa(mantissa: u32, odd: bool) -> u32 {
    const CURVE: Curve =
        Curve { value_shift: 15, slope_falls: false, curvature_falls: true, constant: 0x7FFF, one: 40 };
    let (segment, low) = split(mantissa);
    CURVE.at(SQRT[segment + if odd { 64 } else { 0 }], low)
}

/// MUFU.SQRT
#[inline(always)]
pub fn sqrt(bits: u32) -> u32 {
    let field = (bits >> 23 & 255) as i32;
    let exponent = field - 127;
    let finite = scaled(root_of_mantissa(bits & FRACTION, exponent & 1 == 1), exponent >> 1);
    let positive = if field == 255 { INFINITY } else { finite };
    let signed = if bits & SIGN != 0 { NAN } else { positive };
    let any = if field == 0 { bits & SIGN } else { signed };
    if is_nan(bits) { NAN } else { any }
}

/// log2 of a positive number, by its mantissa and exponent. Negative results are inverted, not negated: that is why
/// the logarithm of 0.25 is -1.9999999.
#[inline(always)]
pub(super) fn logarithm(mantissa: u32, exponent: i32) -> u32 {
    const CURVE: Curve =
        Curve { value_shift: 12, slope_falls: false, curvature_falls: true, constant: 0x3345, one: 38 };
    let (segment, low) = split(mantissa);
    let fraction = CURVE.sum(LG2[segment], low) >> 2;
    let sum = (fraction as i64).wrapping_add(i64::from(exponent) << 36);
    let sum = if mantissa == 0 && exponent == 0 { 0 } else { sum };
    let sign = if sum < 0 { SIGN } else { 0 };
    cut((if sum < 0 { !sum } else { sum }) as u64, 36) | sign
}

/// MUFU.LG2
#[inline(always)]
pub fn lg2(bits: u32) -> u32 {
    let field = (bits >> 23 & 255) as i32;
    let finite = logarithm(bits & FRACTION, field - 127);
    let positive = if field == 255 { INFINITY } else { finite };
    let signed = if bits & SIGN != 0 { NAN } else { positive };
    let any = if field == 0 { INFINITY | SIGN } else { signed };
    if is_nan(bits) { NAN } else { any }
}

/// sin on a quarter turn, for a fraction of 23 bits.
#[inline(always)]
pub(super) fn quarter_sine(fraction: u32) -> u32 {
    const CURVE: Curve = Curve { value_shift: 11, slope_falls: false, curvature_falls: true, constant: 0, one: 37 };
    let (segment, low) = split(fraction);
    CURVE.at(SIN[segment], low)
}

/// The turns of an angle, |x|/2π in 25 bits behind the point: a product with a constant of f32, cut to 24 bits.
#[inline(always)]
fn turns(bits: u32) -> u32 {
    let turns = f64::from(f32::from_bits(bits & !SIGN)) * f64::from(f32::from_bits(0x3E22_F983));
    // What is too small to be cut as f32 would be gives no turns at all.
    let turns = f64::from_bits(turns.to_bits() & !0x1FFF_FFFF);
    let part = (turns - turns.floor()) * 33_554_432.0;
    part as i32 as u32
}

#[inline(always)]
fn wave(bits: u32, turns: u32, sign: u32) -> u32 {
    let quadrant = turns >> 23 & 3;
    let place = turns & FRACTION;
    let place = if quadrant & 1 == 1 { !place & FRACTION } else { place };
    let value = quarter_sine(place) | (sign ^ quadrant >> 1 << 31);
    if bits & !SIGN >= INFINITY { NAN } else { value }
}

/// MUFU.SIN of an angle in radians, with the product that goes before it.
#[inline(always)]
pub fn sin(bits: u32) -> u32 {
    wave(bits, turns(bits), bits & SIGN)
}

/// MUFU.COS
#[inline(always)]
pub fn cos(bits: u32) -> u32 {
    wave(bits, turns(bits) + (1 << 23), 0)
}

/// tanh of a number in [2^-8, 8), by its mantissa and the place of its binade.
#[inline(always)]
pub(super) fn hyperbolic_tangent(mantissa: u32, binade: usize) -> u32 {
    const CURVE: Curve = Curve { value_shift: 15, slope_falls: false, curvature_falls: true, constant: 0, one: 39 };
    let (first, dropped) = TANH_BINADES[if binade < 11 { binade } else { 0 }];
    let fraction = mantissa >> dropped;
    let row = usize::from(first) + (fraction >> 17) as usize;
    CURVE.at(TANH[if row < 51 { row } else { 0 }], fraction & 0x1_FFFF)
}

/// MUFU.TANH
#[inline(always)]
pub fn tanh(bits: u32) -> u32 {
    let field = bits >> 23 & 255;
    let between = hyperbolic_tangent(bits & FRACTION, field.wrapping_sub(119) as usize);
    let magnitude = match field {
        0..119 => bits & !SIGN,
        119..130 => between,
        _ => 0x3F80_0000,
    };
    if is_nan(bits) { NAN } else { magnitude | bits & SIGN }
}

#[cfg(test)]
mod tests;
