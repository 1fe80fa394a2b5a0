//! Numbers as the sum of two f64: about 104 bits, for the few results that f64 is too coarse to round.

use std::f64::consts::LN_2;

/// A number: a large part and what is missing to it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Extended(pub f64, pub f64);

/// ln 2, beyond f64.
const LN_2_EXTENDED: Extended = Extended(LN_2, 2.319_046_813_846_299_6e-17);
/// π/2, beyond f64.
const HALF_PI: Extended = Extended(std::f64::consts::FRAC_PI_2, 6.123_233_995_736_766e-17);

/// Bits of 2/π behind the point, 32 each.
const TWO_OVER_PI: [u32; 9] = [
    0xA2F9_836E,
    0x4E44_1529,
    0xFC27_57D1,
    0xF534_DDC0,
    0xDB62_9599,
    0x3C43_9041,
    0xFE51_63AB,
    0xDEBB_C561,
    0xB724_6E3A,
];

/// The exact sum of two numbers of which the first is the larger.
fn ordered_sum(a: f64, b: f64) -> Extended {
    let sum = a + b;
    Extended(sum, b - (sum - a))
}

/// The exact sum of any two numbers.
fn exact_sum(a: f64, b: f64) -> Extended {
    let sum = a + b;
    let other = sum - a;
    Extended(sum, (a - (sum - other)) + (b - other))
}

impl Extended {
    const ZERO: Extended = Extended(0.0, 0.0);
    const ONE: Extended = Extended(1.0, 0.0);

    fn plus(self, other: Self) -> Self {
        let (high, low) = (exact_sum(self.0, other.0), exact_sum(self.1, other.1));
        let middle = ordered_sum(high.0, high.1 + low.0);
        ordered_sum(middle.0, middle.1 + low.1)
    }

    fn negated(self) -> Self {
        Extended(-self.0, -self.1)
    }

    fn times(self, other: Self) -> Self {
        let product = self.0 * other.0;
        let error = self.0.mul_add(other.0, -product);
        ordered_sum(product, error + (self.0 * other.1 + self.1 * other.0))
    }

    fn over(self, other: Self) -> Self {
        let first = self.0 / other.0;
        let rest = self.plus(other.times(Extended(first, 0.0)).negated());
        let second = rest.0 / other.0;
        let rest = rest.plus(other.times(Extended(second, 0.0)).negated());
        let sum = ordered_sum(first, second);
        sum.plus(Extended(rest.0 / other.0, 0.0))
    }

    fn scaled(self, exponent: i32) -> Self {
        let factor = power_of_two(exponent);
        Extended(self.0 * factor, self.1 * factor)
    }

    /// An f64 that rounds to fewer bits as this number does: where something is missing, its last bit is odd.
    pub fn odd(self) -> f64 {
        let bits = self.0.to_bits();
        if self.1 == 0.0 || bits & 1 == 1 {
            return self.0;
        }
        let away = (self.1 > 0.0) == (self.0 > 0.0);
        f64::from_bits(if away { bits + 1 } else { bits - 1 })
    }

    /// e^x - 1 for |x| <= 1/2, by its series.
    fn exponential_less_one(self) -> Self {
        let mut term = Extended::ONE;
        let mut sum = Extended::ZERO;
        for place in 1..30 {
            term = term.times(self).over(Extended(f64::from(place), 0.0));
            sum = sum.plus(term);
        }
        sum
    }
}

fn power_of_two(exponent: i32) -> f64 {
    f64::from_bits(((1023 + exponent.clamp(-1022, 1023)) as u64) << 52)
}

/// 2^x for |x| < 1000, scaled by nothing.
pub fn power(x: f64) -> Extended {
    let whole = x.round();
    let rest = Extended(x - whole, 0.0).times(LN_2_EXTENDED);
    rest.exponential_less_one().plus(Extended::ONE).scaled(whole as i32)
}

/// log2 x of a positive number: one step of Newton's from what f64 says.
pub fn logarithm(x: f64) -> Extended {
    let near = x.log2();
    // x / 2^near - 1 is the error, times ln 2.
    let (whole, part) = (near.round(), near - near.round());
    let ratio = Extended(x * power_of_two(-(whole as i32)), 0.0).over(power(part));
    let error = ratio.plus(Extended(-1.0, 0.0)).over(LN_2_EXTENDED);
    let quadratic = error.times(error).times(LN_2_EXTENDED).scaled(-1).negated();
    exact_sum(near, 0.0).plus(error).plus(quadratic)
}

/// tanh of a positive number.
pub fn hyperbolic_tangent(x: f64) -> Extended {
    let twice = if x < 0.25 {
        Extended(2.0 * x, 0.0).exponential_less_one()
    } else {
        let turns = Extended(2.0 * x, 0.0).over(LN_2_EXTENDED);
        let whole = turns.0.round();
        let rest = turns.plus(Extended(-whole, 0.0)).times(LN_2_EXTENDED);
        let power = rest.exponential_less_one().plus(Extended::ONE).scaled(whole as i32);
        power.plus(Extended(-1.0, 0.0))
    };
    twice.over(twice.plus(Extended(2.0, 0.0)))
}

/// The quarter turns of a positive f32, modulo 4, and what is left of the angle, within an eighth of a turn.
fn reduced(x: f32) -> (u32, Extended) {
    let bits = x.to_bits();
    let exponent = (bits >> 23) as i32 - 150;
    let mantissa = u128::from(bits & 0x007F_FFFF | 0x0080_0000);
    if exponent < -24 {
        // Below one half nothing has to be taken away.
        return (0, Extended(f64::from(x), 0.0));
    }
    // The highest bits of 2/π only add whole turns.
    let skipped = (exponent - 2).max(0) as u32;
    let word = |place: usize| u128::from(TWO_OVER_PI.get(place).copied().unwrap_or(0));
    let (first, shift) = ((skipped / 32) as usize, skipped % 32);
    let take = |place: usize| (word(place) << 32 | word(place + 1)) >> (32 - shift) & 0xFFFF_FFFF;
    let mut limbs = [0_u128; 4];
    for (place, limb) in limbs.iter_mut().enumerate() {
        *limb = take(first + place) * mantissa;
    }
    let mut carry = 0;
    for limb in limbs.iter_mut().rev() {
        *limb += carry;
        carry = *limb >> 32;
        *limb &= 0xFFFF_FFFF;
    }
    let words = limbs[0] << 96 | limbs[1] << 64 | limbs[2] << 32 | limbs[3];
    // The product is `carry`, the point, `words`, times a power of two between 2^-24 and 2^2.
    let (whole, fraction) = match exponent - skipped as i32 {
        0 => (carry, words),
        up @ 1.. => (carry << up | words >> (128 - up), words << up),
        down => {
            let behind = down.unsigned_abs();
            (carry >> behind, (carry & ((1 << behind) - 1)) << (128 - behind) | words >> behind)
        }
    };
    let whole = whole as u32;
    let (turns, sign, magnitude) = if fraction >> 127 == 1 {
        (whole.wrapping_add(1), -1.0, fraction.wrapping_neg())
    } else {
        (whole, 1.0, fraction)
    };
    let high = (magnitude >> 64) as u64;
    let (one, two, three) = (high >> 16, (magnitude >> 32) as u64 & 0xFFFF_FFFF_FFFF, magnitude as u64 & 0xFFFF_FFFF);
    let angle = Extended(one as f64 * power_of_two(-48), 0.0)
        .plus(Extended(two as f64 * power_of_two(-96), 0.0))
        .plus(Extended(three as f64 * power_of_two(-128), 0.0))
        .times(HALF_PI);
    (turns & 3, Extended(sign * angle.0, sign * angle.1))
}

/// sin and cos of an angle within an eighth of a turn or a little more, by their series.
fn wave(angle: Extended, cosine: bool) -> Extended {
    let square = angle.times(angle).negated();
    let mut term = if cosine { Extended::ONE } else { angle };
    let mut sum = term;
    for place in 1..18 {
        let double = f64::from(2 * place);
        let divisor = if cosine { (double - 1.0) * double } else { double * (double + 1.0) };
        term = term.times(square).over(Extended(divisor, 0.0));
        sum = sum.plus(term);
    }
    sum
}

/// sin of a finite f32.
pub fn sine(x: f32) -> Extended {
    let (turns, angle) = reduced(x.abs());
    let value = wave(angle, turns & 1 == 1);
    if (turns >> 1 == 1) != (x < 0.0) { value.negated() } else { value }
}

/// cos of a finite f32.
pub fn cosine(x: f32) -> Extended {
    let (turns, angle) = reduced(x.abs());
    let value = wave(angle, turns & 1 == 0);
    if matches!(turns, 1 | 2) { value.negated() } else { value }
}
