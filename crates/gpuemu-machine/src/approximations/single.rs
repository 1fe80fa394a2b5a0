//! The approximated instructions of f32, as they are built on the unit. Those with `.ftz` are the unit itself;
//! without it, subnormal numbers are scaled before and after.

use std::marker::PhantomData;

use super::unit::{Cos, Ex2, Lg2, Rcp, Rsqrt, Sin, Sqrt, Tanh, UnitFunction};

const NAN: u32 = 0x7FFF_FFFF;
const UP: f32 = 16_777_216.0;

/// An instruction: what goes before and after the unit. Of one operand, the second is 0.
pub trait SingleFunction {
    type Unit: UnitFunction;
    /// What the unit is given.
    fn before(a: u32, b: u32) -> u32;
    /// What is made of its answer.
    fn after(a: u32, b: u32, answer: u32) -> u32;
}

pub struct Plain<U>(PhantomData<U>);

impl<U: UnitFunction> SingleFunction for Plain<U> {
    type Unit = U;

    #[inline(always)]
    fn before(a: u32, _: u32) -> u32 {
        a
    }

    #[inline(always)]
    fn after(_: u32, _: u32, answer: u32) -> u32 {
        answer
    }
}

/// `ex2.approx.ftz.f32`
pub type Ex2Flushed = Plain<Ex2>;
/// `lg2.approx.ftz.f32`
pub type Lg2Flushed = Plain<Lg2>;
/// `rcp.approx.ftz.f32`
pub type RcpFlushed = Plain<Rcp>;
/// `rsqrt.approx.ftz.f32`
pub type RsqrtFlushed = Plain<Rsqrt>;
/// `sqrt.approx.ftz.f32`
pub type SqrtFlushed = Plain<Sqrt>;
/// `sin.approx.f32`, flushed or not
pub type SinApproximate = Plain<Sin>;
/// `cos.approx.f32`, flushed or not
pub type CosApproximate = Plain<Cos>;
/// `tanh.approx.f32`
pub type TanhApproximate = Plain<Tanh>;

/// Below 2^-126, zero included.
#[inline(always)]
const fn is_tiny(bits: u32) -> bool {
    bits & 0x7FFF_FFFF < 0x0080_0000
}

/// Above 2^126: the reciprocal would be flushed.
#[inline(always)]
const fn is_huge(bits: u32) -> bool {
    (bits & 0x7FFF_FFFF).wrapping_sub(0x7E80_0001) < 0x7F80_0001 - 0x7E80_0001
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

/// A product of which nothing below 2^-126 is left. The same product, raised by 2^64, says whether it is: it is rounded
/// to 24 bits however small it is.
#[inline(always)]
fn times_flushed(bits: u32, factor: f32) -> u32 {
    const RAISED: f32 = 18_446_744_073_709_551_616.0;
    let product = times(bits, factor);
    let tiny = (f32::from_bits(bits) * RAISED * factor).abs() < f32::from_bits(0x2080_0000);
    if tiny { product & 0x8000_0000 } else { flushed(product) }
}

macro_rules! scaled {
    ($($(#[$meta:meta])* $name:ident on $unit:ty: ($a:ident, $b:ident) = $before:expr, $answer:ident => $after:expr;)+) => {
        $($(#[$meta])*
        pub struct $name;

        impl SingleFunction for $name {
            type Unit = $unit;

            #[inline(always)]
            #[allow(unused_variables, reason = "not every instruction needs both operands here")]
            fn before($a: u32, $b: u32) -> u32 {
                $before
            }

            #[inline(always)]
            #[allow(unused_variables, reason = "not every instruction needs both operands here")]
            fn after($a: u32, $b: u32, $answer: u32) -> u32 {
                $after
            }
        })+
    };
}

/// One factor or none.
#[inline(always)]
fn factor(needed: bool, factor: f32) -> f32 {
    if needed { factor } else { 1.0 }
}

/// What keeps a divisor and its reciprocal in the range of the unit.
#[inline(always)]
fn divisor_scale(bits: u32) -> f32 {
    factor(is_huge(bits), 0.25) * factor(is_tiny(bits), UP)
}

/// Whether the power of a number is below 2^-126.
#[inline(always)]
fn is_low(bits: u32) -> bool {
    f32::from_bits(bits) < -126.0
}

scaled! {
    /// `ex2.approx.f32`: the square of the power of one half of a low number.
    Ex2Approximate on Ex2: (a, _b) = times(a, factor(is_low(a), 0.5)),
        answer => times(answer, if is_low(a) { f32::from_bits(answer) } else { 1.0 });
    /// `lg2.approx.f32`
    Lg2Approximate on Lg2: (a, _b) = times(a, factor(is_tiny(a), UP)),
        answer => {
            let lowered = f32::from_bits(answer) - if is_tiny(a) { 24.0 } else { 0.0 };
            if lowered.is_nan() { NAN } else { lowered.to_bits() }
        };
    /// `rsqrt.approx.f32`
    RsqrtApproximate on Rsqrt: (a, _b) = times(a, factor(is_tiny(a), UP)),
        answer => times(answer, factor(is_tiny(a), 4096.0));
    /// `sqrt.approx.f32`
    SqrtApproximate on Sqrt: (a, _b) = times(a, factor(is_tiny(a), UP)),
        answer => times(answer, factor(is_tiny(a), 1.0 / 4096.0));
    /// `rcp.approx.f32`
    RcpApproximate on Rcp: (a, _b) = times(a, divisor_scale(a)),
        answer => times(answer, divisor_scale(a));
    /// `div.full.f32`
    DivideFull on Rcp: (a, b) = times(b, divisor_scale(b)),
        answer => times(answer, f32::from_bits(a) * divisor_scale(b));
    /// `div.full.ftz.f32`
    DivideFullFlushed on Rcp: (a, b) = flushed(times(flushed(b), factor(is_huge(b), 0.25))),
        answer => {
            let dividend = flushed(times(flushed(a), factor(is_huge(b), 0.25)));
            times_flushed(answer, f32::from_bits(dividend))
        };
    /// `div.approx.f32`. A divisor above 2^126 gives 0: its reciprocal is too small for the unit.
    DivideApproximate on Rcp: (a, b) = times(b, factor(is_tiny(b), UP)),
        answer => times(answer, f32::from_bits(a) * factor(is_tiny(b), UP));
    /// `div.approx.ftz.f32`
    DivideApproximateFlushed on Rcp: (a, b) = b,
        answer => times_flushed(answer, f32::from_bits(flushed(a)));
}
