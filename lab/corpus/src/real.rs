//! The arithmetic of a stand-in: float32 as a GPU does it, or float64, in which the same code is
//! the exact model of a kernel's formula, right or wrong.

use std::fmt::Debug;
use std::ops::{Add, Div, Mul, Neg, Sub};

use crate::style::{Division, ExpRoute};

/// A float type that stand-ins compute in.
pub trait Real:
    Copy
    + Debug
    + PartialOrd
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Div<Output = Self>
    + Neg<Output = Self>
    + 'static
{
    /// The nearest number of this type.
    fn new(value: f64) -> Self;
    /// The number as float64.
    fn value(self) -> f64;
    /// eˣ, by the given route.
    fn exp(self, route: ExpRoute) -> Self;
    /// 2ˣ, by the given route.
    fn exp2(self, route: ExpRoute) -> Self;
    /// A quotient, by the given route.
    fn over(self, divisor: Self, division: Division) -> Self;
    /// √x.
    fn sqrt(self) -> Self;
    fn ln(self) -> Self;
    fn tanh(self) -> Self;
    fn erf(self) -> Self;
    fn sin(self) -> Self;
    fn cos(self) -> Self;
    /// |x|.
    fn abs(self) -> Self;
    /// The larger; a NaN loses against a number, as `max.f32` has it.
    fn larger(self, other: Self) -> Self;
    fn is_nan(self) -> bool;

    fn zero() -> Self {
        Self::new(0.0)
    }
    fn one() -> Self {
        Self::new(1.0)
    }
    /// −Inf.
    fn lowest() -> Self {
        Self::new(f64::NEG_INFINITY)
    }
}

/// A result of `ex2.approx.ftz`: up to one ulp off, decided by its own bits, and never subnormal.
fn approximate(value: f32) -> f32 {
    if !value.is_finite() || value == 1.0 {
        return value;
    }
    if value < f32::MIN_POSITIVE {
        return 0.0;
    }
    let bits = value.to_bits();
    let shift = (bits.wrapping_mul(0x9e37_79b9) >> 16) % 3;
    f32::from_bits(bits + shift - 1)
}

impl Real for f32 {
    fn new(value: f64) -> Self {
        value as f32
    }
    fn value(self) -> f64 {
        f64::from(self)
    }
    fn exp(self, route: ExpRoute) -> Self {
        match route {
            ExpRoute::Direct => libm::expf(self),
            ExpRoute::Exp2 | ExpRoute::Approximate => Real::exp2(self * std::f32::consts::LOG2_E, route),
        }
    }
    fn exp2(self, route: ExpRoute) -> Self {
        let value = libm::exp2f(self);
        if route == ExpRoute::Approximate { approximate(value) } else { value }
    }
    fn over(self, divisor: Self, division: Division) -> Self {
        match division {
            Division::Exact => self / divisor,
            Division::Reciprocal => self * (1.0 / divisor),
            Division::Approximate => {
                // `rcp.approx.ftz` gives 0 for a divisor above 2^126.
                let reciprocal = 1.0 / divisor;
                self * if reciprocal.abs() < f32::MIN_POSITIVE { 0.0 } else { reciprocal }
            }
        }
    }
    fn sqrt(self) -> Self {
        f32::sqrt(self)
    }
    fn ln(self) -> Self {
        libm::logf(self)
    }
    fn tanh(self) -> Self {
        libm::tanhf(self)
    }
    fn erf(self) -> Self {
        libm::erff(self)
    }
    fn sin(self) -> Self {
        libm::sinf(self)
    }
    fn cos(self) -> Self {
        libm::cosf(self)
    }
    fn abs(self) -> Self {
        f32::abs(self)
    }
    fn larger(self, other: Self) -> Self {
        self.max(other)
    }
    fn is_nan(self) -> bool {
        f32::is_nan(self)
    }
}

impl Real for f64 {
    fn new(value: f64) -> Self {
        value
    }
    fn value(self) -> f64 {
        self
    }
    fn exp(self, _: ExpRoute) -> Self {
        libm::exp(self)
    }
    fn exp2(self, _: ExpRoute) -> Self {
        libm::exp2(self)
    }
    fn over(self, divisor: Self, _: Division) -> Self {
        self / divisor
    }
    fn sqrt(self) -> Self {
        f64::sqrt(self)
    }
    fn ln(self) -> Self {
        libm::log(self)
    }
    fn tanh(self) -> Self {
        libm::tanh(self)
    }
    fn erf(self) -> Self {
        libm::erf(self)
    }
    fn sin(self) -> Self {
        libm::sin(self)
    }
    fn cos(self) -> Self {
        libm::cos(self)
    }
    fn abs(self) -> Self {
        f64::abs(self)
    }
    fn larger(self, other: Self) -> Self {
        self.max(other)
    }
    fn is_nan(self) -> bool {
        f64::is_nan(self)
    }
}
