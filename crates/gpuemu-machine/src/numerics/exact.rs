//! Numbers that are not rounded yet.

use gpuemu_tensor::FloatFormat;

use super::rounding::Rounding;

/// A finite number: a significand times a power of two.
///
/// The lowest bit of a result may stand for anything below it that is not zero. Results are wide enough that rounding
/// to 53 bits or fewer sees no difference.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Exact {
    /// Its sign; zero has one too.
    pub negative: bool,
    /// The power of two.
    pub exponent: i32,
    pub significand: u128,
}

/// What a pattern stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Value {
    Nan,
    /// Infinity of a sign.
    Infinite(bool),
    Finite(Exact),
}

impl Value {
    /// Reads a pattern of a format.
    pub fn read(format: &FloatFormat, bits: u64) -> Self {
        let negative = bits & format.sign_bit() != 0;
        let magnitude = bits & (format.sign_bit() - 1);
        if magnitude >= format.overflow_bits() {
            let infinite = format.has_infinity && magnitude == format.overflow_bits();
            return if infinite { Value::Infinite(negative) } else { Value::Nan };
        }
        let mantissa = magnitude & ((1 << format.mantissa_bits) - 1);
        let field = (magnitude >> format.mantissa_bits) as i32;
        let hidden = if field == 0 { 0 } else { 1 << format.mantissa_bits };
        Value::Finite(Exact {
            negative,
            exponent: field.max(1) - format.bias() - format.mantissa_bits as i32,
            significand: u128::from(mantissa | hidden),
        })
    }
}

impl Exact {
    pub const fn zero(negative: bool) -> Self {
        Self { negative, exponent: 0, significand: 0 }
    }

    pub fn integer(value: i128) -> Self {
        Self { negative: value < 0, exponent: 0, significand: value.unsigned_abs() }
    }

    pub const fn is_zero(&self) -> bool {
        self.significand == 0
    }

    /// The same number with the other sign.
    pub const fn negated(mut self) -> Self {
        self.negative = !self.negative;
        self
    }

    /// The same number with the highest bit of its significand at `top`, which nothing that is cut off reaches.
    fn raised(mut self, top: u32) -> Self {
        let shift = top as i32 - (127 - self.significand.leading_zeros()) as i32;
        self.significand = if shift >= 0 { self.significand << shift } else { jam(self.significand, -shift as u32) };
        self.exponent -= shift;
        self
    }

    /// The sum. The direction of rounding only decides the sign of a zero.
    pub fn plus(self, other: Exact, rounding: Rounding) -> Exact {
        let opposite = self.negative != other.negative;
        match (self.is_zero(), other.is_zero()) {
            (true, true) => {
                return Exact::zero(if opposite { rounding == Rounding::Down } else { self.negative });
            }
            (true, false) => return other,
            (false, true) => return self,
            (false, false) => {}
        }
        let (one, two) = (self.raised(125), other.raised(125));
        let (large, small) =
            if (one.exponent, one.significand) >= (two.exponent, two.significand) { (one, two) } else { (two, one) };
        let shifted = jam(small.significand, (large.exponent - small.exponent) as u32);
        let significand = if opposite { large.significand - shifted } else { large.significand + shifted };
        if significand == 0 {
            return Exact::zero(rounding == Rounding::Down);
        }
        Exact { negative: large.negative, exponent: large.exponent, significand }
    }

    /// The product of two numbers of at most 64 bits each.
    pub fn times(self, other: Exact) -> Exact {
        Exact {
            negative: self.negative != other.negative,
            exponent: self.exponent + other.exponent,
            significand: self.significand * other.significand,
        }
    }

    /// The quotient; the divisor is not zero and has at most 64 bits.
    pub fn over(self, divisor: Exact) -> Exact {
        let negative = self.negative != divisor.negative;
        if self.is_zero() || divisor.is_zero() {
            return Exact::zero(negative);
        }
        let raised = self.raised(127);
        let quotient = raised.significand / divisor.significand;
        let rest = raised.significand % divisor.significand;
        Exact { negative, exponent: raised.exponent - divisor.exponent, significand: quotient | u128::from(rest != 0) }
    }

    /// The root of a number that is not negative.
    pub fn root(self) -> Exact {
        if self.is_zero() {
            return self;
        }
        let mut raised = self.raised(127);
        if raised.exponent & 1 == 1 {
            // One bit of room is made, so nothing but zeros is cut off: there are at most 64 bits above them.
            raised.significand >>= 1;
            raised.exponent += 1;
        }
        let root = raised.significand.isqrt();
        Exact {
            negative: false,
            exponent: raised.exponent / 2 - 1,
            significand: root << 1 | u128::from(root * root != raised.significand),
        }
    }
}

/// Shifts right; the lowest bit stands for all that was cut off.
fn jam(significand: u128, shift: u32) -> u128 {
    match significand.checked_shr(shift) {
        Some(kept) => kept | u128::from(kept << shift != significand),
        None => u128::from(significand != 0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::numerics::rounding::round;

    fn read(value: f64) -> Exact {
        match Value::read(&FloatFormat::F64, value.to_bits()) {
            Value::Finite(exact) => exact,
            _ => panic!("{value} is not finite"),
        }
    }

    fn rounded(exact: Exact, rounding: Rounding) -> f64 {
        f64::from_bits(round(&exact, &FloatFormat::F64, rounding))
    }

    proptest::proptest! {
        #![proptest_config(proptest::prelude::ProptestConfig {
            cases: 20_000, failure_persistence: None, rng_seed: proptest::test_runner::RngSeed::Fixed(6),
            ..Default::default()
        })]

        /// The processor rounds to nearest; the other directions enclose what is exact.
        #[test]
        fn rounds_as_the_processor_does(a: u64, b: u64, c: u64) {
            let [a, b, c] = [a, b, c].map(f64::from_bits);
            if a.is_finite() && b.is_finite() && c.is_finite() {
                let (x, y, z) = (read(a), read(b), read(c));
                let mut pairs = vec![
                    (x.plus(y, Rounding::Nearest), a + b),
                    (x.times(y), a * b),
                    (x.times(y).plus(z, Rounding::Nearest), a.mul_add(b, c)),
                ];
                if b != 0.0 {
                    pairs.push((x.over(y), a / b));
                }
                if a > 0.0 {
                    pairs.push((x.root(), a.sqrt()));
                }
                for (exact, nearest) in pairs {
                    assert_eq!(rounded(exact, Rounding::Nearest).to_bits(), nearest.to_bits());
                    let (down, up) = (rounded(exact, Rounding::Down), rounded(exact, Rounding::Up));
                    assert!(down <= up && (down == nearest || up == nearest), "{down} {nearest} {up}");
                    assert!(down == up || down.next_up() == up || (down == 0.0 && up == 0.0));
                    let zero = rounded(exact, Rounding::Zero);
                    assert_eq!(zero, if exact.negative { up } else { down });
                }
            }
        }
    }

    #[test]
    fn a_sum_of_nothing_is_negative_only_when_rounding_down() {
        let one = read(1.0);
        assert!(!one.plus(one.negated(), Rounding::Nearest).negative);
        assert!(one.plus(one.negated(), Rounding::Down).negative);
        assert!(Exact::zero(true).plus(Exact::zero(true), Rounding::Up).negative);
    }
}
