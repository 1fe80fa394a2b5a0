//! Types of the elements of matrices, and what their bits mean.

/// The type of an element of a matrix.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Element {
    F16,
    /// Half of a single-precision number.
    Bf16,
    /// A single-precision number whose last 13 bits do not count.
    Tf32,
    /// 8 bits, 4 of them exponent. It has no infinities.
    E4m3,
    /// 8 bits, 5 of them exponent.
    E5m2,
    F32,
    F64,
    /// 8 bits with a sign.
    S8,
    /// 8 bits without a sign.
    U8,
    /// 4 bits with a sign.
    S4,
    /// 4 bits without a sign.
    U4,
    B1,
    /// 32 bits with a sign.
    S32,
}

impl Element {
    /// The type of a name in an opcode.
    pub(super) fn from_name(name: &str) -> Option<Self> {
        Some(match name {
            "f16" => Self::F16,
            "bf16" => Self::Bf16,
            "tf32" => Self::Tf32,
            "e4m3" => Self::E4m3,
            "e5m2" => Self::E5m2,
            "f32" => Self::F32,
            "f64" => Self::F64,
            "s8" => Self::S8,
            "u8" => Self::U8,
            "s4" => Self::S4,
            "u4" => Self::U4,
            "b1" => Self::B1,
            "s32" => Self::S32,
            _ => return None,
        })
    }

    /// Bits of an element.
    pub const fn bits(self) -> u32 {
        match self {
            Self::B1 => 1,
            Self::S4 | Self::U4 => 4,
            Self::S8 | Self::U8 | Self::E4m3 | Self::E5m2 => 8,
            Self::F16 | Self::Bf16 => 16,
            Self::Tf32 | Self::F32 | Self::S32 => 32,
            Self::F64 => 64,
        }
    }

    /// Elements that one register holds.
    pub const fn in_register(self) -> usize {
        if matches!(self, Self::F64) { 1 } else { (32 / self.bits()) as usize }
    }

    /// The single-precision number that the bits of a floating-point operand stand for, as tensor cores read it. Exact.
    #[inline(always)]
    pub(super) fn single(self, bits: u32) -> f32 {
        match self {
            Self::F16 => half_to_single(bits as u16),
            Self::E4m3 => half_to_single(E4M3_TO_HALF[(bits & 0xFF) as usize]),
            Self::E5m2 => half_to_single((bits << 8) as u16),
            Self::Bf16 => f32::from_bits(bits << 16),
            Self::Tf32 => f32::from_bits(bits & TF32_BITS),
            _ => f32::from_bits(bits),
        }
    }
}

/// The bits of a word that count in tf32.
pub(super) const TF32_BITS: u32 = 0xFFFF_E000;

/// e4m3 as half precision, by its bits.
pub(super) static E4M3_TO_HALF: [u16; 256] = {
    let mut table = [0; 256];
    let mut bits = 0;
    while bits < 256 {
        let (sign, exponent, fraction) = ((bits as u16 & 0x80) << 8, bits as u16 >> 3 & 15, bits as u16 & 7);
        table[bits] = sign
            | match (exponent, fraction) {
                (15, 7) => 0x7FFF,
                (0, 0) => 0,
                // Its subnormal numbers are normal numbers of half precision: 2^-9 times the fraction.
                (0, _) => {
                    let leading = 15 - (fraction.leading_zeros() as u16);
                    (leading + 6) << 10 | (fraction << (10 - leading)) & 0x3FF
                }
                _ => (exponent + 8) << 10 | fraction << 7,
            };
        bits += 1;
    }
    table
};

/// Half precision as single precision, exactly; NaNs stay NaNs.
#[inline(always)]
pub(super) fn half_to_single(bits: u16) -> f32 {
    let magnitude = u32::from(bits & 0x7FFF) << 13;
    // 2^112 moves the exponent from one bias to the other, of subnormal numbers too.
    let moved = f32::from_bits(magnitude) * f32::from_bits(0x7780_0000);
    let special = if magnitude >= 0x0F80_0000 { 0x7F80_0000 } else { 0 };
    f32::from_bits(moved.to_bits() | special | u32::from(bits & 0x8000) << 16)
}

/// The half-precision number nearest to `magnitude` times 2^`exponent`, ties to even, one rounding; without a sign.
pub(super) fn round_to_half(magnitude: u64, exponent: i32) -> u16 {
    if magnitude == 0 {
        return 0;
    }
    let length = 64 - magnitude.leading_zeros() as i32;
    // The weight of the last place: 11 bits of a normal number, and never below that of subnormal numbers.
    let last = (exponent + length - 11).max(-24);
    let drop = last - exponent;
    let rounded = match drop {
        ..=0 => magnitude << (-drop).min(11),
        1..=63 => {
            let (whole, rest, middle) = (magnitude >> drop, magnitude & ((1 << drop) - 1), 1u64 << (drop - 1));
            whole + u64::from(rest > middle || (rest == middle && whole & 1 == 1))
        }
        64 => u64::from(magnitude > 1 << 63),
        _ => 0,
    };
    // A number that rounds up to the next power of two carries into the exponent by itself.
    let field = (last + 24).min(40) as u64;
    (field << 10).wrapping_add(rounded).min(0x7C00) as u16
}

/// The half-precision number nearest to a single-precision one; every NaN becomes the one that tensor cores give.
#[inline(always)]
pub(super) fn single_to_half(value: f32) -> u16 {
    let bits = value.to_bits();
    let sign = (bits >> 16 & 0x8000) as u16;
    let exponent = (bits >> 23 & 0xFF) as i32;
    if exponent == 0xFF {
        return if bits & 0x7F_FFFF == 0 { sign | 0x7C00 } else { NAN_HALF };
    }
    let fraction = u64::from(bits & 0x7F_FFFF);
    let magnitude = if exponent == 0 { fraction } else { fraction | 0x80_0000 };
    sign | round_to_half(magnitude, exponent.max(1) - 150)
}

/// The NaN that tensor cores give, in single precision.
pub(super) const NAN_SINGLE: u32 = 0x7FFF_FFFF;

/// The NaN that tensor cores give, in half precision.
pub(super) const NAN_HALF: u16 = 0x7FFF;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_become_singles_and_back() {
        for bits in 0..=u16::MAX {
            let value = half_to_single(bits);
            if bits & 0x7FFF > 0x7C00 {
                assert!(value.is_nan());
                assert_eq!(single_to_half(value), NAN_HALF);
            } else {
                assert_eq!(single_to_half(value), bits, "{bits:#06x}");
            }
        }
        assert_eq!(half_to_single(0x0001).to_bits(), 0x3380_0000);
        assert_eq!(half_to_single(0xC000), -2.0);
        assert_eq!(half_to_single(0x7BFF), 65504.0);
    }

    #[test]
    fn halves_are_rounded_once_to_even() {
        assert_eq!(single_to_half(2049.0), 0x6800);
        assert_eq!(single_to_half(2051.0), 0x6802);
        assert_eq!(single_to_half(65519.996), 0x7BFF);
        assert_eq!(single_to_half(65520.0), 0x7C00);
        assert_eq!(single_to_half(f32::MAX), 0x7C00);
        assert_eq!(round_to_half(1, -25), 0, "half of the smallest is a tie");
        assert_eq!(round_to_half(3, -26), 1);
        assert_eq!(round_to_half(3, -25), 2, "one and a half of the smallest");
        assert_eq!(
            (round_to_half(1 << 63, -88), round_to_half(u64::MAX, -88), round_to_half(u64::MAX, -100)),
            (0, 1, 0)
        );
        assert_eq!(round_to_half(1, 900), 0x7C00);
        // 2048 + 1 and a bit: above the tie, and beyond what single precision would have kept.
        assert_eq!(round_to_half((2049 << 40) + 1, -40), 0x6801);
    }

    #[test]
    fn eight_bits_become_halves() {
        let value = |bits: u32| Element::E4m3.single(bits);
        assert_eq!((value(0x38), value(0xB8), value(0x7E)), (1.0, -1.0, 448.0));
        assert_eq!((value(0x01), value(0x07), value(0x08)), (0.001953125, 0.013671875, 0.015625));
        assert!(value(0x7F).is_nan() && value(0xFF).is_nan() && value(0x80).is_sign_negative());
        let value = |bits: u32| Element::E5m2.single(bits);
        assert_eq!((value(0x3C), value(0x7B), value(0x01)), (1.0, 57344.0, 2f32.powi(-16)));
        assert!(value(0x7C).is_infinite() && value(0x7D).is_nan());
    }

    #[test]
    fn tf32_drops_what_it_does_not_have() {
        assert!(Element::Tf32.single(0x7F80_0001).is_infinite());
        assert_eq!(Element::Tf32.single(0x3F80_1FFF), 1.0);
    }
}
