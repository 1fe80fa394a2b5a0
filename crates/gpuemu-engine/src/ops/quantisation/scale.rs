//! What quantisers share: the scale of a row, numbers divided by a scale, and the codes that they round to.

use crate::ops::{Call, ExcuseKind, Expectation};
use crate::schema::{Scalar, Units};

/// How many numbers share a scale in cases of ops that work on groups.
pub(super) const GROUP_SIZES: [Scalar; 4] = [Scalar::Int(128), Scalar::Int(16), Scalar::Int(32), Scalar::Int(64)];

/// Unit roundoff of float32, in which scales are stored.
const SINGLE: f64 = 1.0 / 16_777_216.0;

/// What else a kernel may have in place of a quotient.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Doubt {
    None,
    /// Zero, where a reciprocal of a huge number is flushed.
    Zero,
    /// An infinity, or NaN for 0/0, where a reciprocal overflows.
    Infinity,
    /// Anything: a NaN is behind it, or infinities meet.
    Anything(&'static str),
}

/// A number divided by a scale, before it is rounded.
#[derive(Debug, Clone, Copy)]
pub(super) struct Quotient {
    value: f64,
    error: f64,
    doubt: Doubt,
}

/// The scale of a row and how well a kernel knows it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Scale {
    value: f64,
    /// Relative error of a quotient by it, the division included.
    relative: f64,
    /// 1 where a bound takes the place of max|x|, which a kernel rounds; else 0.
    bounded: f64,
    doubt: Doubt,
}

impl Scale {
    /// A scale that is an input or parameter.
    pub fn given(call: &Call<'_>, value: f64) -> Self {
        let units = &call.units;
        let doubt = if value.is_nan() {
            Doubt::Anything("NaN as a scale")
        } else if value < units.tiny {
            Doubt::Infinity
        } else if value.is_finite() && 1.0 / value < units.tiny {
            Doubt::Zero
        } else {
            Doubt::None
        };
        Self { value, relative: rounding(units) * (units.division + 2.0), bounded: 0.0, doubt }
    }

    /// max|x| of a row, at most `upper` (if above 0) and at least `eps`, over `levels`.
    pub fn of_row(call: &Call<'_>, row: &[f64], levels: f64, eps: f64, upper: f64) -> Self {
        let units = &call.units;
        let largest = row.iter().fold(0.0, |largest: f64, x| largest.max(x.abs()));
        let bounded = if upper > 0.0 { largest.min(upper) } else { largest }.max(eps);
        // Kernels divide by the scale as it is stored, or by the one that they computed.
        let stored = if units.reference > 0.0 { SINGLE } else { 0.0 };
        let doubt = if row.iter().any(|x| x.is_nan()) {
            Doubt::Anything("NaN in the row")
        } else if bounded < 2.0 * levels * units.tiny {
            Doubt::Infinity
        } else if bounded.is_finite() && 1.0 / bounded < units.tiny {
            Doubt::Zero
        } else {
            Doubt::None
        };
        let relative = rounding(units) * (2.0 * units.division + 3.0) + stored;
        let by_bound = if bounded == largest { 0.0 } else { 1.0 };
        Self { value: bounded / levels, relative, bounded: by_bound, doubt }
    }

    /// Adds the scale to its output. A quotient by a constant loses nothing at the upper end of the range.
    pub fn push(&self, call: &Call<'_>, expectation: &mut Expectation) {
        let units = &call.units;
        if let Doubt::Anything(reason) = self.doubt {
            return expectation.push_undetermined(f64::NAN, reason);
        }
        let flushed = if self.value < 2.0 * units.tiny { units.tiny } else { 0.0 };
        let delta = rounding(units) * (units.division + self.bounded) * self.value + units.eta + flushed;
        expectation.push(self.value, if self.value == 0.0 { 0.0 } else { delta });
    }

    /// A number divided by it.
    pub fn quotient(&self, call: &Call<'_>, x: f64) -> Quotient {
        let certain = |value: f64| Quotient { value, error: 0.0, doubt: Doubt::None };
        if self.value == 0.0 {
            // Nothing but zeros: they stay zero.
            let doubt = if x == 0.0 { Doubt::None } else { Doubt::Infinity };
            return Quotient { doubt, ..certain(if x == 0.0 { 0.0 } else { x.signum() * f64::INFINITY }) };
        }
        let value = x / self.value;
        if value.is_nan() {
            return Quotient { doubt: Doubt::Anything("NaN, or Inf/Inf"), ..certain(value) };
        }
        if self.value.is_infinite() || value.is_infinite() {
            return Quotient { doubt: self.doubt, ..certain(value) };
        }
        let flushed = if x.abs() < call.units.flush { value.abs() } else { 0.0 };
        Quotient { value, error: value.abs() * self.relative + flushed, doubt: self.doubt }
    }
}

/// What one rounding loses, of the reference too where it is no finer than the kernel.
fn rounding(units: &Units) -> f64 {
    if units.reference > 0.0 { 2.0 * units.u } else { units.u }
}

/// The whole numbers that a quotient may be rounded to.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Code {
    One(f64),
    /// The first by the reference, the second as well.
    Either(f64, f64, &'static str),
    /// Nothing can be said.
    Any(&'static str),
}

impl Quotient {
    /// Rounded to the nearest whole number, ties to even, moved by `offset` and clamped.
    pub fn code(self, low: f64, high: f64, offset: f64) -> Code {
        let at = |value: f64| (value.round_ties_even() + offset).clamp(low, high);
        let saturated = self.value.abs() - self.error > high - low + 1.0;
        match self.doubt {
            Doubt::Anything(reason) => return Code::Any(reason),
            Doubt::Infinity if !saturated => return Code::Any("1/scale overflows"),
            _ => {}
        }
        if self.value.is_infinite() {
            return Code::One(at(self.value));
        }
        let (lower, middle, upper) = (at(self.value - self.error), at(self.value), at(self.value + self.error));
        let other = if lower == middle { upper } else { lower };
        let close = if upper - lower > 1.0 { None } else { Some(other) };
        match (close, self.doubt) {
            (None, _) => Code::Any("half-way between codes"),
            (Some(other), Doubt::Zero) if other == middle => Code::Either(middle, at(0.0), "1/scale is flushed"),
            (Some(_), Doubt::Zero) => Code::Any("1/scale is flushed"),
            (Some(other), _) if other == middle => Code::One(middle),
            (Some(other), _) => Code::Either(middle, other, "half-way between codes"),
        }
    }

    /// Clamped to what float8_e4m3fn has; the cell of the output does the rounding.
    pub fn push_float8(self, expectation: &mut Expectation) {
        let clamped = self.value.clamp(-LARGEST_FLOAT8, LARGEST_FLOAT8);
        let saturated = self.value.abs() - self.error > LARGEST_FLOAT8;
        match self.doubt {
            Doubt::Anything(reason) => expectation.push_undetermined(clamped, reason),
            Doubt::Infinity if !saturated => expectation.push_undetermined(clamped, "1/scale overflows"),
            Doubt::Zero => {
                let kind = ExcuseKind::Overflow { nan: false, infinite: false, value: Some(0.0) };
                expectation.push_overflow(clamped, self.error, kind, "1/scale is flushed");
            }
            _ => expectation.push(clamped, if saturated { 0.0 } else { self.error }),
        }
    }
}

/// The largest float8_e4m3fn.
pub(super) const LARGEST_FLOAT8: f64 = 448.0;

impl Code {
    /// Adds it to its output.
    pub fn push(self, expectation: &mut Expectation) {
        match self {
            Code::One(value) => expectation.push(value, 0.0),
            Code::Either(value, other, reason) => expectation.push_either(value, other, reason),
            Code::Any(reason) => expectation.push_undetermined(0.0, reason),
        }
    }

    /// Two codes in one byte, the first in its lower nibble, both moved by 8.
    pub fn packed(self, upper: Self) -> Self {
        let byte = |lower: f64, upper: f64| (lower + 8.0) + 16.0 * (upper + 8.0);
        match (self, upper) {
            (Code::One(lower), Code::One(upper)) => Code::One(byte(lower, upper)),
            (Code::Either(lower, other, reason), Code::One(upper)) => {
                Code::Either(byte(lower, upper), byte(other, upper), reason)
            }
            (Code::One(lower), Code::Either(upper, other, reason)) => {
                Code::Either(byte(lower, upper), byte(lower, other), reason)
            }
            (Code::Any(reason), _) | (_, Code::Any(reason)) => Code::Any(reason),
            (Code::Either(_, _, reason), Code::Either(..)) => Code::Any(reason),
        }
    }
}

/// Pushes (code − zero)·scale. One product rounds once: to the output dtype itself where that is the accumulator's.
pub(super) fn push_dequantised(call: &Call<'_>, expectation: &mut Expectation, code: f64, zero: f64, scale: f64) {
    let units = &call.units;
    let value = (code - zero) * scale;
    let stored = call.dtype.float_format().map_or(0.0, |format| format.unit_roundoff());
    let own = if stored <= units.u { 0.0 } else { units.u * value.abs() + units.eta };
    // code*scale - zero*scale is as common as a difference of codes.
    let parts = if zero == 0.0 { 0.0 } else { (code.abs() + zero.abs()) * scale };
    let parts_error = if zero == 0.0 { 0.0 } else { units.u * (parts + value.abs()) + 2.0 * units.eta };
    let flushed = if scale < units.flush { value.abs() } else { 0.0 };
    let delta = own + parts_error + flushed + units.flush;
    // Infinite parts meet as Inf − Inf.
    if parts > Expectation::OVERFLOW_SHARE * units.max {
        let kind = ExcuseKind::Overflow { nan: true, infinite: true, value: None };
        expectation.push_overflow(value, delta, kind, "zero_point*scale");
    } else {
        expectation.push(value, delta);
    }
}
