//! How tensor cores add: all addends of a block are shifted to the largest exponent, cut off, and added exactly.

use super::element::{NAN_HALF, NAN_SINGLE, half_to_single, round_to_half};

/// Exponents of blocks whose addends are all smaller than this count as this.
const LEAST_EXPONENT: i32 = -133;

/// Bits of a significand after the point.
const FRACTION_BITS: u32 = 23;

/// Whether a number is one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Class {
    Finite,
    Infinite,
    NotANumber,
}

/// A number, taken apart the way tensor cores do: subnormal numbers keep the least exponent of their type and a
/// significand below one.
#[derive(Debug, Clone, Copy)]
pub(super) struct Number {
    class: Class,
    negative: bool,
    /// With 23 bits after the point.
    significand: u32,
    exponent: i32,
}

/// The least exponent of half precision.
pub(super) const LEAST_HALF: i32 = -14;

/// The least exponent of single precision, and of the types that have its exponents.
pub(super) const LEAST_SINGLE: i32 = -126;

impl Number {
    pub(super) const ZERO: Self =
        Self { class: Class::Finite, negative: false, significand: 0, exponent: LEAST_SINGLE };

    /// The number with this value, of a type with this least exponent.
    pub(super) fn new(value: f32, least_exponent: i32) -> Self {
        let bits = value.to_bits();
        let (field, fraction) = (bits >> FRACTION_BITS & 0xFF, bits & 0x7F_FFFF);
        let class = match (field, fraction) {
            (0xFF, 0) => Class::Infinite,
            (0xFF, _) => Class::NotANumber,
            _ => Class::Finite,
        };
        let exponent = field.max(1) as i32 - 127;
        let significand = if field == 0 { fraction } else { fraction | 1 << FRACTION_BITS };
        let below = (least_exponent - exponent).clamp(0, 31);
        Self {
            class,
            negative: value.is_sign_negative(),
            significand: significand >> below,
            exponent: exponent + below,
        }
    }
}

/// What the addends of a block come to.
#[derive(Debug, Clone, Copy)]
pub(super) enum Sum {
    /// `total` times 2^`exponent`.
    Finite {
        total: i64,
        exponent: i32,
    },
    Infinite {
        negative: bool,
    },
    NotANumber,
}

/// The sum of the products of pairs and an accumulator. The significands of the pairs have no more than 10 bits after
/// the point.
pub(super) fn add(pairs: impl Iterator<Item = (Number, Number)> + Clone, accumulator: Number, extra_bits: u32) -> Sum {
    let mut infinities = [accumulator.class == Class::Infinite && !accumulator.negative, false];
    infinities[1] = accumulator.class == Class::Infinite && accumulator.negative;
    let mut not_a_number = accumulator.class == Class::NotANumber;
    let mut largest = if accumulator.significand == 0 { i32::MIN } else { accumulator.exponent };
    for (a, b) in pairs.clone() {
        if a.class == Class::Finite && b.class == Class::Finite {
            if a.significand != 0 && b.significand != 0 {
                largest = largest.max(a.exponent + b.exponent);
            }
            continue;
        }
        let of_zero = |number: Number| number.class == Class::Finite && number.significand == 0;
        if a.class == Class::NotANumber || b.class == Class::NotANumber || of_zero(a) || of_zero(b) {
            not_a_number = true;
        } else {
            infinities[usize::from(a.negative != b.negative)] = true;
        }
    }
    match (not_a_number, infinities) {
        (true, _) | (_, [true, true]) => return Sum::NotANumber,
        (_, [false, true]) => return Sum::Infinite { negative: true },
        (_, [true, false]) => return Sum::Infinite { negative: false },
        _ => {}
    }
    let largest = largest.max(LEAST_EXPONENT);
    let addend = |significand: i64, exponent: i32, negative: bool| {
        let shifted = (significand << extra_bits) >> largest.saturating_sub(exponent).clamp(0, 62);
        if negative { -shifted } else { shifted }
    };
    let mut total = addend(i64::from(accumulator.significand), accumulator.exponent, accumulator.negative);
    for (a, b) in pairs {
        let product = (i64::from(a.significand) * i64::from(b.significand)) >> FRACTION_BITS;
        if product != 0 {
            total += addend(product, a.exponent + b.exponent, a.negative != b.negative);
        }
    }
    Sum::Finite { total, exponent: largest - (FRACTION_BITS + extra_bits) as i32 }
}

impl Sum {
    /// The sum cut off to single precision. Zero is positive.
    pub(super) fn single(self) -> f32 {
        let (total, exponent) = match self {
            Sum::NotANumber => return f32::from_bits(NAN_SINGLE),
            Sum::Infinite { negative } => return if negative { f32::NEG_INFINITY } else { f32::INFINITY },
            Sum::Finite { total, exponent } => (total, exponent),
        };
        let magnitude = total.unsigned_abs();
        let length = 64 - magnitude.leading_zeros() as i32;
        // The weight of the last place, which subnormal numbers share with the smallest normal ones.
        let last = (exponent + length - 24).max(-149);
        let drop = last - exponent;
        let kept = match drop {
            ..=0 => magnitude << (-drop).min(24),
            1..=63 => magnitude >> drop,
            _ => 0,
        };
        if kept == 0 {
            return 0.0;
        }
        // The leading bit of a normal number adds one to the exponent.
        let field = (last + 149).min(300) as u64;
        let bits = ((field << FRACTION_BITS) + kept).min(0x7F80_0000) as u32;
        f32::from_bits(bits | if total < 0 { 1 << 31 } else { 0 })
    }

    /// The sum rounded to half precision, once, as a single-precision number. Zero is positive.
    pub(super) fn half(self) -> f32 {
        match self {
            Sum::NotANumber => half_to_single(NAN_HALF),
            Sum::Infinite { .. } => self.single(),
            Sum::Finite { total, exponent } => {
                let rounded = half_to_single(round_to_half(total.unsigned_abs(), exponent));
                if total < 0 && rounded != 0.0 { -rounded } else { rounded }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(pairs: &[(f32, f32)], accumulator: f32, extra_bits: u32) -> Sum {
        let number = |value| Number::new(value, LEAST_HALF);
        let pairs = pairs.iter().map(|&(a, b)| (number(a), number(b)));
        add(pairs, Number::new(accumulator, LEAST_SINGLE), extra_bits)
    }

    #[test]
    fn addends_are_cut_off_at_the_largest_exponent() {
        // One and 2^-24: the bit is kept while two extra bits are, or one, and cut off when the result is made.
        let tiny = 2f32.powi(-12);
        assert_eq!(block(&[(1.0, 1.0), (tiny, tiny)], 0.0, 2).single(), 1.0);
        // Two of them make 2^-23, which single precision has.
        assert_eq!(block(&[(1.0, 1.0), (tiny, tiny)], tiny * tiny, 1).single(), 1.0 + 2f32.powi(-23));
        // Of 2^-25 four make that much: one extra bit has already lost them, two have not.
        let smaller = [(tiny, tiny / 2.0); 4];
        let pairs = [&smaller[..], &[(1.0, 1.0)]].concat();
        assert_eq!(block(&pairs, 0.0, 1).single(), 1.0);
        assert_eq!(block(&pairs, 0.0, 2).single(), 1.0 + 2f32.powi(-23));
    }

    #[test]
    fn results_are_cut_off_towards_zero() {
        let value = 2f32.powi(-12);
        assert_eq!(block(&[(-1.0, 1.0), (-value, value)], 0.0, 2).single(), -1.0);
        assert_eq!(block(&[(1.0, 1.0), (-value, value)], 0.0, 2).single(), 1.0 - 2f32.powi(-24));
        assert_eq!(block(&[(1.0, -1.0), (1.0, 1.0)], -0.0, 2).single().to_bits(), 0, "zero is positive");
        assert_eq!(block(&[], f32::MAX, 2).single(), f32::MAX);
        assert_eq!(block(&[], f32::from_bits(1), 2).single().to_bits(), 1);
        assert_eq!(block(&[(60000.0, 60000.0)], f32::MAX, 2).single(), f32::MAX, "too small to count");
        assert_eq!(block(&[(1.0, 1.0)], f32::from_bits(0x8000_0001), 2).single(), 1.0);
    }

    #[test]
    fn infinities_and_what_is_no_number() {
        let infinite = f32::INFINITY;
        assert_eq!(block(&[(infinite, 1.0)], 1.0, 2).single(), infinite);
        assert_eq!(block(&[(infinite, -1.0)], 1.0, 2).single(), -infinite);
        for (pairs, accumulator) in [
            (vec![(infinite, 0.0)], 0.0),
            (vec![(infinite, 1.0), (infinite, -1.0)], 0.0),
            (vec![(infinite, 1.0)], -infinite),
            (vec![(f32::NAN, 0.0)], 0.0),
            (vec![(1.0, 1.0)], f32::NAN),
        ] {
            assert_eq!(block(&pairs, accumulator, 2).single().to_bits(), NAN_SINGLE);
        }
    }

    #[test]
    fn half_precision_is_rounded_to_nearest_once() {
        assert_eq!(block(&[(2048.0, 1.0), (1.0, 1.0)], 0.0, 2).half(), 2048.0);
        assert_eq!(block(&[(2048.0, 1.0), (1.0, 1.0), (2f32.powi(-14), 1.0)], 0.0, 2).half(), 2050.0);
        assert_eq!(block(&[(-2f32.powi(-14), 2f32.powi(-14))], 0.0, 2).half().to_bits(), 0);
        assert_eq!(block(&[(65504.0, 2.0)], 0.0, 2).half(), f32::INFINITY);
    }
}
