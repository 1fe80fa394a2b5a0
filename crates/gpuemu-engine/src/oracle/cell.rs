//! The rounding cell of an output: the reals that round to it. A kernel that accumulates wide and
//! rounds once returns a value whose cell lies within δ of y, so the test needs no `u·|y|` term,
//! which would hide every bias under one ulp.

use gpuemu_tensor::{DType, FloatFormat};

use crate::schema::FinalRounding;

/// How an element failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mismatch {
    /// A number too far from the reference.
    Value,
    /// NaN where the reference has none.
    UnexpectedNan,
    /// No NaN where the reference is NaN.
    MissingNan,
    /// An infinity where the reference is finite.
    UnexpectedInfinity,
    /// Not the infinity that the reference has.
    MissingInfinity,
}

/// Distance from y to the cell of an output pattern. NaN outputs have no cell: the result is NaN.
pub fn distance_to_cell(dtype: DType, bits: u64, y: f64, rounding: FinalRounding) -> f64 {
    let Some(format) = dtype.float_format() else {
        return (dtype.decode(bits) - y).abs();
    };
    let out = dtype.decode(bits);
    if out.is_nan() {
        return f64::NAN;
    }
    if format.mantissa_bits == 52 {
        let half = if rounding == FinalRounding::Nearest { 0.5 } else { 1.0 };
        return if out == y { 0.0 } else { ((out - y).abs() - half * format.ulp(out)).max(0.0) };
    }
    let (low, high) = cell(format, bits & (format.sign_bit() - 1), rounding);
    // Judge magnitudes: seen from a negative output the number line is mirrored.
    let seen = if out.is_sign_negative() { -y } else { y };
    (seen - high).max(low - seen).max(0.0)
}

/// The cell of a magnitude pattern that is not NaN.
fn cell(format: &FloatFormat, magnitude_bits: u64, rounding: FinalRounding) -> (f64, f64) {
    let here = format.magnitude(magnitude_bits);
    let below = if magnitude_bits == 0 { -format.min_subnormal() } else { format.magnitude(magnitude_bits - 1) };
    if magnitude_bits >= format.overflow_bits() {
        let start = if rounding == FinalRounding::Nearest { (below + here) / 2.0 } else { below };
        return (start, f64::INFINITY);
    }
    let above = format.magnitude(magnitude_bits + 1);
    match rounding {
        FinalRounding::Nearest => ((below + here) / 2.0, (here + above) / 2.0),
        FinalRounding::TowardZero => (if magnitude_bits == 0 { below } else { here }, above),
        FinalRounding::Stochastic => (below, above),
    }
}

/// Judges one element by class and distance. `allowed` is c·δ, or atol + rtol·|y|.
pub fn judge_element(
    dtype: DType,
    bits: u64,
    y: f64,
    allowed: f64,
    by_cell: bool,
    rounding: FinalRounding,
) -> Result<f64, Mismatch> {
    let out = dtype.decode(bits);
    if y.is_nan() {
        return if out.is_nan() { Ok(0.0) } else { Err(Mismatch::MissingNan) };
    }
    if out.is_nan() {
        // Formats without infinity write NaN on overflow.
        let format = dtype.float_format().filter(|format| !format.has_infinity);
        // Up to half a step above the largest number they round to it.
        let edge = |format: &FloatFormat| format.max_value() + 0.5 * format.ulp(format.max_value());
        let overflowed = format.is_some_and(|format| y.abs() + allowed >= edge(format));
        return if overflowed { Ok(0.0) } else { Err(Mismatch::UnexpectedNan) };
    }
    if y.is_infinite() {
        // Integers saturate: their largest number is what infinity becomes.
        let saturated = !dtype.is_float() && bits == dtype.encode(y);
        return if out == y || saturated { Ok(0.0) } else { Err(Mismatch::MissingInfinity) };
    }
    let distance = if by_cell {
        if allowed == 0.0 && rounding == FinalRounding::Nearest && dtype.is_float() {
            // Everything is exact: the one right answer is y rounded to nearest even.
            let right = dtype.decode(dtype.encode(y));
            if right == out { 0.0 } else { distance_to_cell(dtype, bits, y, rounding).max(f64::MIN_POSITIVE) }
        } else {
            distance_to_cell(dtype, bits, y, rounding)
        }
    } else if out.is_infinite() {
        // A finite reference beyond the range rounds to infinity.
        let rounded = dtype.decode(dtype.encode(y));
        if rounded == out { 0.0 } else { f64::INFINITY }
    } else {
        (out - y).abs()
    };
    if distance <= allowed {
        Ok(distance)
    } else if out.is_infinite() {
        Err(Mismatch::UnexpectedInfinity)
    } else {
        Err(Mismatch::Value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn distance(dtype: DType, out: f64, y: f64) -> f64 {
        distance_to_cell(dtype, dtype.encode(out), y, FinalRounding::Nearest)
    }

    #[test]
    fn the_cell_is_half_an_ulp_and_a_quarter_below_a_power_of_two() {
        let ulp = 2f64.powi(-10);
        assert_eq!(distance(DType::F16, 1.0, 1.0 + ulp / 2.0), 0.0);
        assert_eq!(distance(DType::F16, 1.0, 1.0 + ulp), ulp / 2.0);
        assert_eq!(distance(DType::F16, 1.0, 1.0 - ulp / 4.0), 0.0);
        assert_eq!(distance(DType::F16, 1.0, 1.0 - ulp / 2.0), ulp / 4.0);
        assert_eq!(distance(DType::F16, -1.0, -1.0 - ulp), ulp / 2.0);
        assert_eq!(distance(DType::F16, 0.0, -(2f64.powi(-25))), 0.0);
    }

    #[test]
    fn infinity_starts_half_an_ulp_above_the_largest_number() {
        assert_eq!(distance(DType::F16, f64::INFINITY, 65520.0), 0.0);
        assert_eq!(distance(DType::F16, f64::INFINITY, 65504.0), 16.0);
        assert_eq!(distance(DType::F16, 65504.0, 65520.0), 0.0);
        assert_eq!(distance(DType::F32, f64::INFINITY, 1e300), 0.0);
        assert_eq!(distance(DType::F16, f64::INFINITY, -1e9), f64::INFINITY.min(65520.0 + 1e9));
    }

    #[test]
    fn classes_of_nan_and_infinity() {
        let judge = |out: f64, y: f64| {
            judge_element(DType::F32, DType::F32.encode(out), y, 1.0, true, FinalRounding::Nearest).map(|_| ())
        };
        assert_eq!(judge(f64::NAN, f64::NAN), Ok(()));
        assert_eq!(judge(1.0, f64::NAN), Err(Mismatch::MissingNan));
        assert_eq!(judge(f64::NAN, 1.0), Err(Mismatch::UnexpectedNan));
        assert_eq!(judge(f64::INFINITY, 1.0), Err(Mismatch::UnexpectedInfinity));
        assert_eq!(judge(1.0, f64::INFINITY), Err(Mismatch::MissingInfinity));
        assert_eq!(judge(f64::NEG_INFINITY, f64::INFINITY), Err(Mismatch::MissingInfinity));
        assert_eq!(judge(f64::INFINITY, f64::INFINITY), Ok(()));
        let narrow = |dtype: DType, bits: u64, y: f64| {
            judge_element(dtype, bits, y, 1.0, true, FinalRounding::Nearest).map(|_| ())
        };
        assert_eq!(narrow(DType::I8, 127, f64::INFINITY), Ok(()));
        assert_eq!(narrow(DType::I8, 5, f64::INFINITY), Err(Mismatch::MissingInfinity));
        assert_eq!(narrow(DType::I8, 0, f64::NAN), Err(Mismatch::MissingNan));
        assert_eq!(
            narrow(DType::F8E4M3FN, DType::F8E4M3FN.encode(448.0), f64::INFINITY),
            Err(Mismatch::MissingInfinity)
        );
        assert_eq!(narrow(DType::F8E4M3FN, 0x7f, 1e6), Ok(()));
        assert_eq!(narrow(DType::F8E4M3FN, 0x7f, 1.0), Err(Mismatch::UnexpectedNan));
        assert_eq!(narrow(DType::F8E4M3FN, 0x7f, 448.0), Err(Mismatch::UnexpectedNan));
        assert_eq!(narrow(DType::F8E4M3FN, 0x7f, 463.5), Ok(()));
    }

    #[test]
    fn an_exact_tie_has_one_right_answer() {
        // 2049 lies halfway between 2048 and 2050 in float16; even is 2048.
        let judge =
            |out: f64| judge_element(DType::F16, DType::F16.encode(out), 2049.0, 0.0, true, FinalRounding::Nearest);
        assert!(judge(2048.0).is_ok());
        assert!(judge(2050.0).is_err());
    }

    proptest! {
        #[test]
        fn a_correctly_rounded_value_is_in_its_own_cell(bits in any::<u64>(), choice in 0usize..5) {
            let dtype = [DType::F64, DType::F32, DType::F16, DType::BF16, DType::F8E5M2][choice];
            let y = f64::from_bits(bits);
            prop_assume!(!y.is_nan());
            let out = dtype.encode(y);
            prop_assert!(judge_element(dtype, out, y, 0.0, true, FinalRounding::Nearest).is_ok());
        }

        #[test]
        fn truncation_has_a_one_sided_cell(mantissa in 1.0f64..2.0, exponent in -10i32..10) {
            let y = mantissa * 2f64.powi(exponent);
            let ulp = gpuemu_tensor::FloatFormat::BF16.ulp(y);
            let truncated = (y / ulp).floor() * ulp;
            let bits = DType::BF16.encode(truncated);
            prop_assert_eq!(distance_to_cell(DType::BF16, bits, y, FinalRounding::TowardZero), 0.0);
            let above = DType::BF16.encode(truncated + ulp);
            prop_assert_eq!(distance_to_cell(DType::BF16, above, y, FinalRounding::Stochastic), 0.0);
            prop_assert!(y == truncated || distance_to_cell(DType::BF16, above, y, FinalRounding::TowardZero) > 0.0);
        }
    }
}
