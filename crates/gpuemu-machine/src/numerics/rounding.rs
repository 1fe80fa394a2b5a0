//! Rounding to a format.

use gpuemu_tensor::FloatFormat;

use super::exact::Exact;

/// TF32: the range of f32 with the precision of f16.
pub const TF32: FloatFormat = FloatFormat { exponent_bits: 8, mantissa_bits: 10, has_infinity: true };

/// Where to round to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Rounding {
    /// `.rn`: to the nearest, ties to even.
    #[default]
    Nearest,
    /// `.rna`: to the nearest, ties away from zero.
    NearestAway,
    /// `.rz`: towards zero.
    Zero,
    /// `.rm`: towards minus infinity.
    Down,
    /// `.rp`: towards infinity.
    Up,
}

impl Rounding {
    /// Every direction; the place of each is its number in packed modifiers.
    pub const ALL: [Rounding; 5] =
        [Rounding::Nearest, Rounding::NearestAway, Rounding::Zero, Rounding::Down, Rounding::Up];

    /// Whether a number of this sign goes to the larger magnitude: `odd` says whether the smaller one is odd, `half`
    /// how the part between the two compares with one half. That part is not zero.
    pub fn away(self, negative: bool, odd: bool, half: std::cmp::Ordering) -> bool {
        match self {
            Rounding::Nearest => half.is_gt() || (half.is_eq() && odd),
            Rounding::NearestAway => half.is_ge(),
            Rounding::Zero => false,
            Rounding::Down => negative,
            Rounding::Up => !negative,
        }
    }
}

/// Shifts right and rounds; `shift` may be beyond the width.
pub fn shift_right(significand: u128, shift: u32, negative: bool, rounding: Rounding) -> u128 {
    if shift == 0 {
        return significand;
    }
    let kept = significand.checked_shr(shift).unwrap_or(0);
    let rest = if shift >= 128 { significand } else { significand & ((1 << shift) - 1) };
    if rest == 0 {
        return kept;
    }
    // Beyond the width even the first bit that is cut stands below one half.
    let half = if shift > 128 { std::cmp::Ordering::Less } else { rest.cmp(&(1 << (shift - 1))) };
    kept + u128::from(rounding.away(negative, kept & 1 == 1, half))
}

/// The pattern of the number nearest to `exact` in the direction of `rounding`. What is too large becomes infinite, or
/// the largest number where the direction says so or the format has no infinity.
pub fn round(exact: &Exact, format: &FloatFormat, rounding: Rounding) -> u64 {
    let sign = if exact.negative { format.sign_bit() } else { 0 };
    if exact.significand == 0 {
        return sign;
    }
    let top = exact.exponent + (127 - exact.significand.leading_zeros()) as i32;
    let (least, mantissa_bits) = (format.min_exponent(), format.mantissa_bits);
    if top > format.max_exponent() {
        return sign | overflow(exact.negative, format, rounding);
    }
    let binade = top.max(least);
    let shift = binade - mantissa_bits as i32 - exact.exponent;
    let kept = if shift <= 0 {
        exact.significand << -shift
    } else {
        shift_right(exact.significand, shift as u32, exact.negative, rounding)
    };
    // The hidden bit of a normal number, and a carry out of the mantissa, add to the exponent by themselves.
    let magnitude = (((binade - least) as u64) << mantissa_bits) + kept as u64;
    if magnitude >= format.overflow_bits() {
        return sign | overflow(exact.negative, format, rounding);
    }
    sign | magnitude
}

/// As [`round`], with zero in place of what is too small for a normal number. Recorded: the chip asks that of the number
/// that it would have rounded to, had the exponent no lower bound.
pub fn round_flushed(exact: &Exact, format: &FloatFormat, rounding: Rounding) -> u64 {
    const RAISED: i32 = 8;
    let bits = round(exact, format, rounding);
    let raised = round(&Exact { exponent: exact.exponent + RAISED, ..*exact }, format, rounding);
    let magnitude = raised & (format.sign_bit() - 1);
    if magnitude >> format.mantissa_bits <= RAISED as u64 { bits & format.sign_bit() } else { bits }
}

fn overflow(negative: bool, format: &FloatFormat, rounding: Rounding) -> u64 {
    let stays = match rounding {
        Rounding::Nearest | Rounding::NearestAway => !format.has_infinity,
        Rounding::Zero => true,
        Rounding::Down => !negative,
        Rounding::Up => negative,
    };
    if stays { format.max_bits() } else { format.overflow_bits() }
}
