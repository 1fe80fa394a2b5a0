//! The bit layout of a binary floating-point format, and the one implementation of rounding to it.
//!
//! `half` converts two of these formats; the oracle needs all six from one definition, together
//! with the neighbours of a value (its rounding cell), so the layout is data here.

/// A binary floating-point format of at most 64 bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FloatFormat {
    /// Bits of the exponent field.
    pub exponent_bits: u32,
    /// Bits of the mantissa field, without the hidden bit.
    pub mantissa_bits: u32,
    /// Whether the topmost exponent holds infinities. The `fn` formats have only one NaN there.
    pub has_infinity: bool,
}

impl FloatFormat {
    /// IEEE binary64.
    pub const F64: FloatFormat = FloatFormat { exponent_bits: 11, mantissa_bits: 52, has_infinity: true };
    /// IEEE binary32.
    pub const F32: FloatFormat = FloatFormat { exponent_bits: 8, mantissa_bits: 23, has_infinity: true };
    /// IEEE binary16.
    pub const F16: FloatFormat = FloatFormat { exponent_bits: 5, mantissa_bits: 10, has_infinity: true };
    /// bfloat16: the upper half of binary32.
    pub const BF16: FloatFormat = FloatFormat { exponent_bits: 8, mantissa_bits: 7, has_infinity: true };
    /// OCP fp8 with 3 mantissa bits, no infinity.
    pub const E4M3FN: FloatFormat = FloatFormat { exponent_bits: 4, mantissa_bits: 3, has_infinity: false };
    /// OCP fp8 with 2 mantissa bits.
    pub const E5M2: FloatFormat = FloatFormat { exponent_bits: 5, mantissa_bits: 2, has_infinity: true };

    pub const fn bits(&self) -> u32 {
        1 + self.exponent_bits + self.mantissa_bits
    }

    pub const fn bias(&self) -> i32 {
        (1 << (self.exponent_bits - 1)) - 1
    }

    /// Exponent of the smallest normal number.
    pub const fn min_exponent(&self) -> i32 {
        1 - self.bias()
    }

    /// Exponent of the largest finite number.
    pub const fn max_exponent(&self) -> i32 {
        if self.has_infinity { self.bias() } else { self.bias() + 1 }
    }

    pub const fn sign_bit(&self) -> u64 {
        1 << (self.bits() - 1)
    }

    /// The pattern of the largest finite number.
    pub const fn max_bits(&self) -> u64 {
        self.overflow_bits() - 1
    }

    /// The pattern one above the largest finite number: infinity, or NaN where there is none.
    pub const fn overflow_bits(&self) -> u64 {
        if self.has_infinity {
            ((1 << self.exponent_bits) - 1) << self.mantissa_bits
        } else {
            (1 << (self.bits() - 1)) - 1
        }
    }

    pub const fn nan_bits(&self) -> u64 {
        if self.has_infinity { self.overflow_bits() | (1 << (self.mantissa_bits - 1)) } else { self.overflow_bits() }
    }

    /// The largest finite number.
    pub fn max_value(&self) -> f64 {
        self.magnitude(self.max_bits())
    }

    /// The smallest positive normal number.
    pub fn min_normal(&self) -> f64 {
        power_of_two(self.min_exponent())
    }

    /// The smallest positive number.
    pub fn min_subnormal(&self) -> f64 {
        power_of_two(self.min_exponent() - self.mantissa_bits as i32)
    }

    /// Unit roundoff: half the distance from 1 to the next number.
    pub fn unit_roundoff(&self) -> f64 {
        power_of_two(-(self.mantissa_bits as i32) - 1)
    }

    /// The distance between neighbours of this format around `value` (the upper one's binade).
    pub fn ulp(&self, value: f64) -> f64 {
        let exponent = exponent_of(value.abs()).clamp(self.min_exponent(), self.max_exponent());
        power_of_two(exponent - self.mantissa_bits as i32)
    }

    /// The value that a sign-less pattern stands for when the topmost exponent is read like any
    /// other: the pattern above the largest finite number is then the next power of two (or step),
    /// which makes "halfway to the neighbour" right at the edge of overflow too.
    pub fn magnitude(&self, bits: u64) -> f64 {
        let mantissa = bits & ((1 << self.mantissa_bits) - 1);
        let exponent = (bits >> self.mantissa_bits) as i32;
        if exponent == 0 {
            return mantissa as f64 * self.min_subnormal();
        }
        let unbiased = exponent - self.bias();
        if unbiased > 1023 {
            return f64::INFINITY;
        }
        let fraction = f64::from_bits((1023 << 52) | (mantissa << (52 - self.mantissa_bits)));
        fraction * power_of_two(unbiased)
    }

    /// The value of a bit pattern.
    pub fn decode(&self, bits: u64) -> f64 {
        let magnitude_bits = bits & (self.sign_bit() - 1);
        let negative = bits & self.sign_bit() != 0;
        let magnitude = if magnitude_bits < self.overflow_bits() {
            self.magnitude(magnitude_bits)
        } else if self.has_infinity && magnitude_bits == self.overflow_bits() {
            f64::INFINITY
        } else {
            f64::NAN
        };
        if negative { -magnitude } else { magnitude }
    }

    /// Rounds to the nearest number of this format, ties to even, in one step from `f64`.
    pub fn round(&self, value: f64) -> f64 {
        if !value.is_finite() || self.mantissa_bits == 52 {
            return if value.is_infinite() && !self.has_infinity { f64::NAN } else { value };
        }
        let rounded = self.round_unbounded(value);
        if rounded.abs() > self.max_value() {
            return if self.has_infinity { f64::INFINITY.copysign(value) } else { f64::NAN };
        }
        rounded
    }

    /// Rounds a finite value as if the exponent had no upper limit.
    #[inline(always)]
    fn round_unbounded(&self, value: f64) -> f64 {
        let exponent = exponent_of(value.abs()).max(self.min_exponent());
        let step_exponent = exponent - self.mantissa_bits as i32;
        if step_exponent + 52 > 1023 {
            // Only values above 2^971 come here: far beyond every narrow format.
            return value;
        }
        // Adding 1.5 * 2^52 steps leaves no bits below one step, so the addition itself rounds.
        let shift = 1.5 * power_of_two(step_exponent + 52);
        ((value.abs() + shift) - shift).copysign(value)
    }

    /// The pattern nearest to a value. Overflow gives infinity, or NaN where there is none.
    pub fn encode(&self, value: f64) -> u64 {
        if self.mantissa_bits == 52 {
            return value.to_bits();
        }
        let sign = if value.is_sign_negative() { self.sign_bit() } else { 0 };
        if value.is_nan() {
            return sign | self.nan_bits();
        }
        let rounded = if value.is_infinite() { value } else { self.round_unbounded(value) }.abs();
        if rounded > self.max_value() {
            return sign | self.overflow_bits();
        }
        if rounded < self.min_normal() {
            return sign | (rounded * power_of_two(self.mantissa_bits as i32 - self.min_exponent())) as u64;
        }
        let bits = rounded.to_bits();
        let exponent = ((bits >> 52) as i32 - 1023 + self.bias()) as u64;
        let mantissa = (bits & ((1 << 52) - 1)) >> (52 - self.mantissa_bits);
        sign | (exponent << self.mantissa_bits) | mantissa
    }
}

/// 2^exponent, also where the result is subnormal; infinity above 1023, zero below -1074.
#[inline(always)]
pub const fn power_of_two(exponent: i32) -> f64 {
    if exponent > 1023 {
        f64::INFINITY
    } else if exponent >= -1022 {
        f64::from_bits(((exponent + 1023) as u64) << 52)
    } else if exponent >= -1074 {
        f64::from_bits(1 << (exponent + 1074))
    } else {
        0.0
    }
}

/// The exponent of a finite magnitude: floor(log2), with all of 0 and the subnormals at -1023
/// or below (which is below every narrower format's smallest exponent).
#[inline(always)]
pub fn exponent_of(magnitude: f64) -> i32 {
    let field = ((magnitude.to_bits() >> 52) & 0x7ff) as i32;
    if field == 0 && magnitude != 0.0 {
        // A subnormal f64: the leading bit's own place.
        return 63 - magnitude.to_bits().leading_zeros() as i32 - 1074;
    }
    field - 1023
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const NARROW: [FloatFormat; 5] =
        [FloatFormat::F32, FloatFormat::F16, FloatFormat::BF16, FloatFormat::E4M3FN, FloatFormat::E5M2];

    #[test]
    fn every_pattern_of_a_narrow_format_round_trips() {
        for format in [FloatFormat::F16, FloatFormat::BF16, FloatFormat::E4M3FN, FloatFormat::E5M2] {
            for bits in 0..1u64 << format.bits() {
                let value = format.decode(bits);
                if value.is_nan() {
                    assert!(format.decode(format.encode(value)).is_nan());
                } else {
                    assert_eq!(format.encode(value), bits, "{format:?} {bits:#x}");
                }
            }
        }
    }

    #[test]
    fn known_limits() {
        assert_eq!(FloatFormat::F16.max_value(), 65504.0);
        assert_eq!(FloatFormat::E4M3FN.max_value(), 448.0);
        assert_eq!(FloatFormat::E5M2.max_value(), 57344.0);
        assert_eq!(FloatFormat::F32.max_value(), f64::from(f32::MAX));
        assert_eq!(FloatFormat::BF16.ulp(1.0), 2f64.powi(-7));
        assert!(FloatFormat::E4M3FN.decode(FloatFormat::E4M3FN.encode(1e9)).is_nan());
        assert_eq!(FloatFormat::F16.encode(65519.9), FloatFormat::F16.max_bits());
        assert_eq!(FloatFormat::F16.encode(65520.0), FloatFormat::F16.overflow_bits());
    }

    proptest! {
        #[test]
        fn encoding_binary32_agrees_with_the_processor(bits in any::<u64>()) {
            let value = f64::from_bits(bits);
            prop_assume!(!value.is_nan());
            prop_assert_eq!(FloatFormat::F32.encode(value), u64::from((value as f32).to_bits()));
        }

        #[test]
        fn rounding_picks_a_nearest_neighbour(bits in any::<u32>(), choice in 0usize..5) {
            let format = NARROW[choice];
            let value = f64::from(f32::from_bits(bits)) * 1.000_000_3;
            prop_assume!(value.is_finite() && value.abs() <= format.max_value());
            let rounded = format.round(value);
            let pattern = format.encode(value) & (format.sign_bit() - 1);
            prop_assert_eq!(rounded.abs(), format.magnitude(pattern));
            let error = (rounded - value).abs();
            prop_assert!(error <= (format.magnitude(pattern + 1) - value.abs()).abs());
            if pattern > 0 {
                prop_assert!(error <= (format.magnitude(pattern - 1) - value.abs()).abs());
            }
        }
    }
}
