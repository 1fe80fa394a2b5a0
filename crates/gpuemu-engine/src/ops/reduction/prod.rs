//! prod along the last dim.

use crate::case::Strategy;
use crate::ops::{BuiltIn, Call, ExcuseKind, Expectation, OpError};
use crate::schema::{Property, Schema};

pub(in crate::ops) fn op() -> BuiltIn {
    BuiltIn::new(
        Schema::builtin("prod", "input[...,H] -> out[...]")
            .alias(&["product"])
            .reduces(&["H"])
            .describe(
                "Product along the last dim, in any order; 1 where there is no element. NaN where a row has NaN, or 0 and an infinity.",
                "prod(x)",
            )
            .keywords(&["product", "multiply", "reduce"])
            .bounded_by(BOUND)
            .holds(&[Property::PermutationEquivariant, Property::BatchInvariant])
            .amplified_by(&[Strategy::Integers, Strategy::Regular])
            .usual_bugs(&["starts from 0 in place of 1", "padding of zeros enters the product", "tail elements dropped"]),
        expect,
    )
}

pub(in crate::ops) const BOUND: &str = "((1 + u)^n - 1)*|y|, and n*2^-149*prod(max(1, |x|)) where prod(min(1, |x|)) is below the normal range; undetermined where partial products may leave the range at both ends";
fn expect(call: &Call<'_>) -> Result<Vec<Expectation>, OpError> {
    let (input, width) = (call.input("input")?, call.size("H")?);
    let mut expectation = Expectation::with_capacity(call.batch_count());
    for number in 0..call.batch_count() {
        let mut product = Product::of_nothing();
        let row = input.get(number * width..(number + 1) * width).unwrap_or_default();
        row.iter().for_each(|x| product.include(*x));
        product.push_to(&mut expectation, call)?;
    }
    Ok(vec![expectation])
}

/// A number beyond the range of float64: mantissa·2^exponent.
#[derive(Clone, Copy)]
struct Scaled {
    mantissa: f64,
    exponent: i64,
}

impl Scaled {
    const ONE: Self = Self { mantissa: 1.0, exponent: 0 };

    fn times(self, factor: f64) -> Self {
        // The factor first: a subnormal one would lose the digits of the product.
        let (factor, shift) = libm::frexp(factor);
        let (mantissa, exponent) = libm::frexp(self.mantissa * factor);
        Self { mantissa, exponent: self.exponent + i64::from(shift) + i64::from(exponent) }
    }

    fn value(self) -> f64 {
        libm::ldexp(self.mantissa, self.exponent.clamp(-5_000, 5_000) as i32)
    }
}

/// A product of any number of factors, with the range that its partial products may have in any order.
#[derive(Clone, Copy)]
pub(in crate::ops) struct Product {
    count: usize,
    whole: Scaled,
    /// Π max(1, |x|): no partial product is above it.
    above: Scaled,
    /// Π min(1, |x|) without zeros: none is below it, but for 0.
    below: Scaled,
    zero: bool,
    infinite: bool,
    nan: bool,
    integers: bool,
}

impl Product {
    pub fn of_nothing() -> Self {
        Self {
            count: 0,
            whole: Scaled::ONE,
            above: Scaled::ONE,
            below: Scaled::ONE,
            zero: false,
            infinite: false,
            nan: false,
            integers: true,
        }
    }

    pub fn include(&mut self, x: f64) {
        self.count += 1;
        self.nan |= x.is_nan();
        self.zero |= x == 0.0;
        self.infinite |= x.is_infinite();
        self.integers &= x.trunc() == x;
        let sign = if x.is_sign_negative() { -1.0 } else { 1.0 };
        let finite = x.is_finite() && x != 0.0;
        self.whole = self.whole.times(if finite { x } else { sign });
        if finite && x.abs() > 1.0 {
            self.above = self.above.times(x.abs());
        } else if finite {
            self.below = self.below.times(x.abs());
        }
    }

    /// Adds the element that it is.
    pub fn push_to(&self, expectation: &mut Expectation, call: &Call<'_>) -> Result<(), OpError> {
        let units = call.units;
        let roundings = self.count as f64;
        if roundings * units.u > 0.1 {
            return Err(OpError::BoundRefused { terms: self.count, unit_roundoff: units.u });
        }
        let (above, below) = (self.above.value(), self.below.value());
        let overflow = above > Expectation::OVERFLOW_SHARE * units.max;
        let underflow = below * Expectation::OVERFLOW_SHARE < units.tiny;
        let not_a_number = ExcuseKind::Overflow { nan: true, infinite: false, value: None };
        if self.nan || self.zero && self.infinite {
            expectation.push(f64::NAN, 0.0);
        } else if self.zero && overflow {
            expectation.push_overflow(0.0, 0.0, not_a_number, "a partial product times 0");
        } else if self.zero {
            expectation.push(0.0, 0.0);
        } else if self.infinite {
            let y = f64::INFINITY.copysign(self.whole.mantissa);
            if underflow {
                expectation.push_overflow(y, 0.0, not_a_number, "infinity times a partial product that underflows");
            } else {
                expectation.push(y, 0.0);
            }
        } else {
            let y = self.whole.value();
            // The reference of a float64 kernel rounds as often.
            let share = if units.reference > 0.0 { 2.0 } else { 1.0 };
            let relative = share * libm::expm1(roundings * libm::log1p(units.u));
            let lost = if underflow { roundings * (units.eta + units.flush) * above } else { 0.0 };
            let exact = self.integers && above <= units.exact;
            let delta = if exact { 0.0 } else { relative * y.abs() + lost };
            if overflow && underflow {
                expectation.push_undetermined(y, "partial products that may overflow and underflow");
            } else if overflow && y.abs() <= 2.0 * units.max {
                let infinite = ExcuseKind::Overflow { nan: false, infinite: true, value: None };
                expectation.push_overflow(y, delta, infinite, "a partial product");
            } else {
                expectation.push(y, delta);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn products_outside_of_the_range_of_float64_come_back() {
        let factors = [1e300, 1e200, -1e-300, 1e-200, 3.0];
        let product = factors.iter().fold(Scaled::ONE, |product, factor| product.times(*factor));
        assert!((product.value() + 3.0).abs() < 1e-13);
        assert_eq!(Scaled::ONE.times(1e300).times(1e300).value(), f64::INFINITY);
        assert_eq!(Scaled::ONE.times(5e-324).times(4.0).value(), 2e-323);
    }
}
