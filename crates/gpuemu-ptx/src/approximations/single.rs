//! The approximated instructions of f32, as they are built on the unit. Those with `.ftz` are the unit itself;
//! without it, subnormal numbers are scaled before and after.

use super::unit;

const NAN: u32 = 0x7FFF_FFFF;
const UP: f32 = 16_777_216.0;

#[inline(always)]
fn is_nan(bits: u32) -> bool {
    f32::from_bits(bits).is_nan()
}

/// Below 2^-126, zero included.
#[inline(always)]
const fn is_tiny(bits: u32) -> bool {
    bits & 0x7FFF_FFFF < 0x0080_0000
}

/// Above 2^126: the reciprocal would be flushed.
#[inline(always)]
const fn is_huge(bits: u32) -> bool {
    bits & 0x7FFF_FFFF > 0x7E80_0000 && bits & 0x7FFF_FFFF <= 0x7F80_0000
}

#[inline(always)]
fn times(bits: u32, factor: f32) -> u32 {
    let product = f32::from_bits(bits) * factor;
    if product.is_nan() { NAN } else { product.to_bits() }
}

#[inline(always)]
const fn flushed(bits: u32) -> u32 {
    if is_tiny(bits) { bits & 0x8000_0000 } else { bits }
}

/// `ex2.approx.f32`
#[inline(always)]
pub fn ex2(bits: u32) -> u32 {
    let low = f32::from_bits(bits) < -126.0;
    let power = unit::ex2(if low { times(bits, 0.5) } else { bits });
    if low { times(power, f32::from_bits(power)) } else { power }
}

/// `lg2.approx.f32`
#[inline(always)]
pub fn lg2(bits: u32) -> u32 {
    let tiny = is_tiny(bits);
    let logarithm = unit::lg2(if tiny { times(bits, UP) } else { bits });
    let lowered = (f32::from_bits(logarithm) - 24.0).to_bits();
    if tiny && !is_nan(logarithm) { lowered } else { logarithm }
}

/// `rsqrt.approx.f32`
#[inline(always)]
pub fn rsqrt(bits: u32) -> u32 {
    let tiny = is_tiny(bits);
    let root = unit::rsqrt(if tiny { times(bits, UP) } else { bits });
    if tiny { times(root, 4096.0) } else { root }
}

/// `sqrt.approx.f32`
#[inline(always)]
pub fn sqrt(bits: u32) -> u32 {
    let tiny = is_tiny(bits);
    let root = unit::sqrt(if tiny { times(bits, UP) } else { bits });
    if tiny { times(root, 1.0 / 4096.0) } else { root }
}

/// `rcp.approx.f32`
#[inline(always)]
pub fn rcp(bits: u32) -> u32 {
    let scale = divisor_scale(bits);
    times(unit::rcp(times(bits, scale)), scale)
}

/// What keeps a divisor and its reciprocal in the range of the unit.
#[inline(always)]
fn divisor_scale(bits: u32) -> f32 {
    if is_huge(bits) {
        0.25
    } else if is_tiny(bits) {
        UP
    } else {
        1.0
    }
}

/// `div.full.f32`
#[inline(always)]
pub fn divide_full(a: u32, b: u32) -> u32 {
    let scale = divisor_scale(b);
    times(unit::rcp(times(b, scale)), f32::from_bits(a) * scale)
}

/// `div.full.ftz.f32`
#[inline(always)]
pub fn divide_full_flushed(a: u32, b: u32) -> u32 {
    let scale = if is_huge(b) { 0.25 } else { 1.0 };
    let dividend = flushed(times(flushed(a), scale));
    flushed(times(unit::rcp(flushed(times(flushed(b), scale))), f32::from_bits(dividend)))
}

/// `div.approx.f32`. A divisor above 2^126 gives 0: its reciprocal is too small for the unit.
#[inline(always)]
pub fn divide_approximate(a: u32, b: u32) -> u32 {
    let scale = if is_tiny(b) { UP } else { 1.0 };
    times(unit::rcp(times(b, scale)), f32::from_bits(a) * scale)
}

/// `div.approx.ftz.f32`
#[inline(always)]
pub fn divide_approximate_flushed(a: u32, b: u32) -> u32 {
    flushed(times(unit::rcp(b), f32::from_bits(flushed(a))))
}
