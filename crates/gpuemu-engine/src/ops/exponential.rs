//! eˣ in float64, written so that compilers work on many elements at once: no table, no branch, no call.

/// log₂e.
const PER_OCTAVE: f64 = std::f64::consts::LOG2_E;
/// The upper part of ln 2, short enough that its product with an exponent is exact.
const OCTAVE_UPPER: f64 = f64::from_bits(0x3fe6_2e42_fee0_0000);
/// What the upper part leaves of ln 2.
const OCTAVE_LOWER: f64 = 1.908_214_929_270_587_7e-10;
/// Added to a number below 2⁵¹, leaves the nearest whole number in its last bits.
const ROUNDING: f64 = 6_755_399_441_055_744.0;
/// Where eˣ is beyond the largest number, and where below half of the smallest.
const ENDS: (f64, f64) = (-746.0, 710.0);

/// 1/k! for k from 2 to 13, the highest first.
const TERMS: [f64; 12] = [
    1.0 / 6_227_020_800.0,
    1.0 / 479_001_600.0,
    1.0 / 39_916_800.0,
    1.0 / 3_628_800.0,
    1.0 / 362_880.0,
    1.0 / 40_320.0,
    1.0 / 5_040.0,
    1.0 / 720.0,
    1.0 / 120.0,
    1.0 / 24.0,
    1.0 / 6.0,
    0.5,
];

/// 2ⁿ from n + [`ROUNDING`], for an n whose power is a normal number.
#[inline(always)]
fn power(shifted: f64) -> f64 {
    f64::from_bits(shifted.to_bits().wrapping_add(1023) << 52)
}

/// eˣ within 1 ulp, subnormal results included; e^−Inf is 0, e^Inf is Inf, NaN stays NaN.
#[inline(always)]
pub(super) fn exp(x: f64) -> f64 {
    let x = if x < ENDS.0 { ENDS.0 } else { x };
    let x = if x > ENDS.1 { ENDS.1 } else { x };
    let octaves = (x * PER_OCTAVE + ROUNDING) - ROUNDING;
    // x less whole octaves, in two parts: the upper one is exact.
    let (upper, lower) = (x - octaves * OCTAVE_UPPER, octaves * OCTAVE_LOWER);
    let rest = upper - lower;
    let mut series = TERMS[0];
    for term in &TERMS[1..] {
        series = series * rest + term;
    }
    let mantissa = 1.0 + (upper - (lower - rest * rest * series));
    // In two steps: 2⁻¹⁰⁷⁴ and 2¹⁰²⁴ are no normal numbers.
    let first = octaves * 0.5 + ROUNDING;
    let second = (octaves - (first - ROUNDING)) + ROUNDING;
    mantissa * power(first) * power(second)
}

/// eˣ − 1 for a small x ≥ 0 (see [`SMALL`]), within 1e-12 of itself.
#[inline(always)]
pub(super) fn small_expm1(x: f64) -> f64 {
    let mut series = 1.0;
    for divisor in [8.0, 7.0, 6.0, 5.0, 4.0, 3.0, 2.0] {
        series = 1.0 + series * x * (1.0 / divisor);
    }
    x * series
}

/// The largest argument of [`small_expm1`].
pub(super) const SMALL: f64 = 0.0625;

#[cfg(test)]
mod tests {
    use super::*;

    fn ulps(x: f64) -> f64 {
        let (found, expected) = (exp(x), libm::exp(x));
        if found == expected {
            return 0.0;
        }
        (found.to_bits() as i64 - expected.to_bits() as i64).abs() as f64
    }

    #[test]
    fn exp_is_within_an_ulp_of_the_library_over_its_range() {
        let mut worst = 0.0f64;
        for step in 0..4_000_000i32 {
            let x = -745.5 + f64::from(step) * (1456.0 / 4e6) + f64::from(step % 977) * 1e-9;
            if libm::exp(x).is_finite() {
                worst = worst.max(ulps(x));
            }
            worst = worst.max(ulps(-f64::from(step) * 1e-6)).max(ulps(f64::from(step) * 1e-13));
        }
        assert!(worst <= 1.0, "{worst}");
    }

    #[test]
    fn exp_keeps_the_ends_of_the_range() {
        assert_eq!(exp(0.0), 1.0);
        assert_eq!(exp(-0.0), 1.0);
        assert_eq!(exp(f64::NEG_INFINITY), 0.0);
        assert_eq!(exp(f64::INFINITY), f64::INFINITY);
        assert!(exp(f64::NAN).is_nan());
        assert_eq!(exp(-1e300), 0.0);
        assert_eq!(exp(1e300), f64::INFINITY);
        assert_eq!(exp(-745.2), 0.0);
        assert_eq!(exp(709.79), f64::INFINITY);
        for x in [-708.4, -708.5, -720.0, -744.0, -745.13, 709.78, 709.0] {
            assert!(ulps(x) <= 1.0, "{x}: {} {}", exp(x), libm::exp(x));
        }
    }

    #[test]
    fn small_expm1_agrees_with_the_library() {
        for step in 0..=10_000 {
            let x = SMALL * f64::from(step) / 1e4;
            assert!((small_expm1(x) - libm::expm1(x)).abs() <= 1e-12 * x);
        }
    }
}
