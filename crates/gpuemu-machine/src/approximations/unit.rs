//! The special-function unit (MUFU) of the chip, in whole numbers.
//!
//! Each function is cut into segments; in each of them three products are added, one of them with a square that is
//! cut off below, and the sum is cut to 24 bits. Subnormal numbers are zero here, given and made. The form of the
//! arithmetic was first documented for an older unit by envytools; see the page on emulation.

use super::coefficients::{EX2, LG2, RCP, RSQRT, SIN, SQRT, TANH, TANH_BINADES, Table};
use crate::registers::file::LANES;

const INFINITY: u32 = 0x7F80_0000;
const NAN: u32 = 0x7FFF_FFFF;
const SIGN: u32 = 0x8000_0000;
const FRACTION: u32 = 0x007F_FFFF;

/// A function of the unit: what it does before and after the sum.
pub trait UnitFunction {
    const TABLE: &'static Table;
    /// How they are added up.
    const CURVE: Curve;
    /// The row of an argument, 17 bits within it, and what else of the argument the result needs.
    fn place(bits: u32) -> Place;
    fn finish(bits: u32, rest: u32, sum: u64) -> u32;
}

/// A row, 17 bits within it, and what else is needed.
pub type Place = (u32, u32, u32);

#[inline(always)]
pub fn answer<F: UnitFunction>(bits: u32) -> u32 {
    let (row, low, rest) = F::place(bits);
    F::finish(bits, rest, F::CURVE.sum(F::TABLE[row as usize & 127], low))
}

/// 32 answers. Only the look into the table is done lane by lane: the loops before and after it are vectorised.
#[inline(always)]
pub fn answers<F: UnitFunction>(arguments: &[u32; LANES]) -> [u32; LANES] {
    let (mut places, mut lows, mut rests) = ([0; LANES], [0; LANES], [0; LANES]);
    let (mut rows, mut results) = ([0; LANES], [0; LANES]);
    for lane in 0..LANES {
        (places[lane], lows[lane], rests[lane]) = F::place(arguments[lane]);
    }
    for lane in 0..LANES {
        rows[lane] = F::TABLE[places[lane] as usize & 127];
    }
    for lane in 0..LANES {
        results[lane] = F::finish(arguments[lane], rests[lane], F::CURVE.sum(rows[lane], lows[lane]));
    }
    results
}

/// How the rows of a function are added up.
pub struct Curve {
    value_shift: u32,
    slope_falls: bool,
    curvature_falls: bool,
    constant: u64,
}

impl Curve {
    #[inline(always)]
    fn sum(&self, row: u64, low: u32) -> u64 {
        let value = (row & 0x3FF_FFFF) << self.value_shift;
        let slope = (row >> 26 & 0xF_FFFF) * u64::from(low);
        let curvature = (row >> 46) * u64::from(square(low));
        let sloped = if self.slope_falls { value.wrapping_sub(slope) } else { value.wrapping_add(slope) };
        let curved = if self.curvature_falls { sloped.wrapping_sub(curvature) } else { sloped.wrapping_add(curvature) };
        curved.wrapping_add(self.constant)
    }
}

/// The square of 17 bits as the unit forms it: each partial product is cut below bit 18, the sum below bit 1.
///
/// Products of bits from 9 on are never cut, so they are a square; those of a lower bit with a higher one come twice.
#[inline(always)]
fn square(low: u32) -> u32 {
    let high = low >> 9;
    let mut sum = (high * high) >> 1;
    let mut bit = 2;
    while bit < 9 {
        sum += (low >> (18 - bit)) & 0_u32.wrapping_sub(low >> bit & 1);
        bit += 1;
    }
    sum
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
    let bounded = if field >= 255 { INFINITY } else { moved };
    if field <= 0 { 0 } else { bounded }
}

#[inline(always)]
const fn is_nan(bits: u32) -> bool {
    bits & !SIGN > INFINITY
}

#[inline(always)]
const fn field(bits: u32) -> i32 {
    (bits >> 23 & 255) as i32
}

/// The segment of a 23-bit fraction among 64, and the bits within it.
#[inline(always)]
const fn split(fraction: u32, rest: u32) -> Place {
    (fraction >> 17 & 63, fraction & 0x1_FFFF, rest)
}

/// MUFU.EX2
pub struct Ex2;

impl Ex2 {
    /// The argument, 23 bits behind the point.
    #[inline(always)]
    fn fixed(bits: u32) -> i32 {
        let mantissa = (bits & FRACTION | 0x0080_0000) << 8;
        let shift = 135_i32.wrapping_sub(field(bits)) as u32;
        let within = if shift < 32 { mantissa >> (shift & 31) } else { 0 };
        // From 256 on every result is 0 or infinite.
        let fixed = (if field(bits) >= 135 { i32::MAX as u32 } else { within }) as i32;
        // The unit negates by inverting, except for whole numbers.
        let negated = if fixed as u32 & FRACTION != 0 { !fixed } else { -fixed };
        if bits & SIGN != 0 { negated } else { fixed }
    }
}

impl UnitFunction for Ex2 {
    const TABLE: &'static Table = &EX2;
    const CURVE: Curve = Curve { value_shift: 13, slope_falls: false, curvature_falls: false, constant: 0x77E2 };

    #[inline(always)]
    fn place(bits: u32) -> Place {
        let fixed = Self::fixed(bits) as u32;
        split(fixed, fixed)
    }

    #[inline(always)]
    fn finish(bits: u32, fixed: u32, sum: u64) -> u32 {
        let power = scaled(cut(sum, 38), fixed as i32 >> 23);
        if is_nan(bits) { NAN } else { power }
    }
}

/// MUFU.RCP. It has twice as many segments, half as long; all terms are doubled to take 17 bits of place as well.
pub struct Rcp;

impl UnitFunction for Rcp {
    const TABLE: &'static Table = &RCP;
    const CURVE: Curve = Curve { value_shift: 14, slope_falls: true, curvature_falls: false, constant: 0x8FCE };

    #[inline(always)]
    fn place(bits: u32) -> Place {
        (bits >> 16 & 127, (bits & 0xFFFF) << 1, 0)
    }

    #[inline(always)]
    fn finish(bits: u32, _: u32, sum: u64) -> u32 {
        let field = field(bits);
        let finite = scaled(cut(sum, 40), 127 - field);
        let small = if field == 255 { 0 } else { finite };
        let magnitude = if field == 0 { INFINITY } else { small };
        if is_nan(bits) { NAN } else { magnitude | bits & SIGN }
    }
}

/// The place for a function that has 64 rows for even exponents and 64 for odd ones.
#[inline(always)]
const fn split_by_parity(bits: u32) -> Place {
    let (segment, low, rest) = split(bits, 0);
    // Exponents are 127 too large, so that an even field is an odd exponent.
    (segment | (!bits >> 23 & 1) << 6, low, rest)
}

pub struct Rsqrt;

impl UnitFunction for Rsqrt {
    const TABLE: &'static Table = &RSQRT;
    const CURVE: Curve = Curve { value_shift: 14, slope_falls: true, curvature_falls: false, constant: 0x7FFF };

    #[inline(always)]
    fn place(bits: u32) -> Place {
        split_by_parity(bits)
    }

    #[inline(always)]
    fn finish(bits: u32, _: u32, sum: u64) -> u32 {
        let field = field(bits);
        let one = bits & FRACTION == 0 && field & 1 == 1;
        let finite = scaled(if one { 0x3F80_0000 } else { cut(sum, 40) }, -((field - 127) >> 1));
        let positive = if field == 255 { 0 } else { finite };
        let signed = if bits & SIGN != 0 { NAN } else { positive };
        let any = if field == 0 { INFINITY | bits & SIGN } else { signed };
        if is_nan(bits) { NAN } else { any }
    }
}

pub struct Sqrt;

impl UnitFunction for Sqrt {
    const TABLE: &'static Table = &SQRT;
    const CURVE: Curve = Curve { value_shift: 15, slope_falls: false, curvature_falls: true, constant: 0x7FFF };

    #[inline(always)]
    fn place(bits: u32) -> Place {
        split_by_parity(bits)
    }

    #[inline(always)]
    fn finish(bits: u32, _: u32, sum: u64) -> u32 {
        let field = field(bits);
        let finite = scaled(cut(sum, 40), (field - 127) >> 1);
        let positive = if field == 255 { INFINITY } else { finite };
        let signed = if bits & SIGN != 0 { NAN } else { positive };
        let any = if field == 0 { bits & SIGN } else { signed };
        if is_nan(bits) { NAN } else { any }
    }
}

/// MUFU.LG2. Negative results are inverted, not negated: that is why the logarithm of 0.25 is -1.9999999.
pub struct Lg2;

impl UnitFunction for Lg2 {
    const TABLE: &'static Table = &LG2;
    const CURVE: Curve = Curve { value_shift: 12, slope_falls: false, curvature_falls: true, constant: 0x3345 };

    #[inline(always)]
    fn place(bits: u32) -> Place {
        split(bits, 0)
    }

    #[inline(always)]
    fn finish(bits: u32, _: u32, sum: u64) -> u32 {
        let field = field(bits);
        let sum = ((sum >> 2) as i64).wrapping_add(i64::from(field - 127) << 36);
        let sum = if bits == 0x3F80_0000 { 0 } else { sum };
        let sign = if sum < 0 { SIGN } else { 0 };
        let finite = cut((if sum < 0 { !sum } else { sum }) as u64, 36) | sign;
        let positive = if field == 255 { INFINITY } else { finite };
        let signed = if bits & SIGN != 0 { NAN } else { positive };
        let any = if field == 0 { INFINITY | SIGN } else { signed };
        if is_nan(bits) { NAN } else { any }
    }
}

/// The turns of an angle, |x|/2π in 25 bits behind the point: a product with a constant of f32, cut to 24 bits.
#[inline(always)]
fn turns(bits: u32) -> u32 {
    let turns = f64::from(f32::from_bits(bits & !SIGN)) * f64::from(f32::from_bits(0x3E22_F983));
    // What is too small to be cut as f32 would be gives no turns at all.
    let turns = f64::from_bits(turns.to_bits() & !0x1FFF_FFFF);
    let part = ((turns - turns.floor()) * 33_554_432.0).floor();
    // Behind the point of 2^52 a whole number is its own bits.
    (part + 4_503_599_627_370_496.0).to_bits() as u32
}

/// The place within a quarter turn: every second one runs backwards.
#[inline(always)]
const fn place_of_turns(turns: u32) -> Place {
    split(if turns >> 23 & 1 == 1 { !turns } else { turns }, turns)
}

const QUARTER: Curve = Curve { value_shift: 11, slope_falls: false, curvature_falls: true, constant: 0 };

#[inline(always)]
fn wave(bits: u32, sum: u64, sign: u32) -> u32 {
    if bits & !SIGN >= INFINITY { NAN } else { cut(sum, 37) | sign & SIGN }
}

/// MUFU.SIN of an angle in radians, with the product that goes before it.
pub struct Sin;

impl UnitFunction for Sin {
    const TABLE: &'static Table = &SIN;
    const CURVE: Curve = QUARTER;

    #[inline(always)]
    fn place(bits: u32) -> Place {
        place_of_turns(turns(bits))
    }

    #[inline(always)]
    fn finish(bits: u32, turns: u32, sum: u64) -> u32 {
        wave(bits, sum, bits ^ turns >> 24 << 31)
    }
}

pub struct Cos;

impl UnitFunction for Cos {
    const TABLE: &'static Table = &SIN;
    const CURVE: Curve = QUARTER;

    #[inline(always)]
    fn place(bits: u32) -> Place {
        place_of_turns(turns(bits) + (1 << 23))
    }

    #[inline(always)]
    fn finish(bits: u32, turns: u32, sum: u64) -> u32 {
        wave(bits, sum, turns >> 24 << 31)
    }
}

pub struct Tanh;

impl UnitFunction for Tanh {
    const TABLE: &'static Table = &TANH;
    const CURVE: Curve = Curve { value_shift: 15, slope_falls: false, curvature_falls: true, constant: 0 };

    #[inline(always)]
    fn place(bits: u32) -> Place {
        let binade = (bits >> 23 & 255).wrapping_sub(119);
        let (first, dropped) = TANH_BINADES[binade as usize & 15];
        let fraction = (bits & FRACTION) >> dropped;
        (u32::from(first) + (fraction >> 17), fraction & 0x1_FFFF, 0)
    }

    #[inline(always)]
    fn finish(bits: u32, _: u32, sum: u64) -> u32 {
        let field = field(bits);
        let small = if field < 119 { bits & !SIGN } else { cut(sum, 39) };
        let magnitude = if field >= 130 { 0x3F80_0000 } else { small };
        if is_nan(bits) { NAN } else { magnitude | bits & SIGN }
    }
}

#[cfg(test)]
mod tests;
