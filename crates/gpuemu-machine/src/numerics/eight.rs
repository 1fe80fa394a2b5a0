//! The 8-bit formats beside f32 and f16, written so that loops over lanes vectorise.

use super::half::{NAN, narrow_f16, widen_f16};

/// f32 to a format of 8 bits with so many of mantissa: to nearest, ties to even; what is too large becomes the largest
/// number (`.satfinite`).
#[inline(always)]
fn narrow<const MANTISSA: u32>(value: f32, largest: u32) -> u8 {
    let bias = (1 << (6 - MANTISSA)) - 1;
    let bits = value.to_bits();
    let sign = (bits >> 24) as u8 & 0x80;
    let magnitude = bits & 0x7FFF_FFFF;
    let shift = 23 - MANTISSA;
    // Adding this puts the last bit of the subnormal numbers in the last place of an f32.
    let magic = (127 + 1 - bias + shift) << 23;
    let subnormal = (f32::from_bits(magnitude) + f32::from_bits(magic)).to_bits().wrapping_sub(magic);
    let half = (1 << (shift - 1)) - 1;
    let normal =
        magnitude.wrapping_sub((127 - bias) << 23).wrapping_add(half).wrapping_add(magnitude >> shift & 1) >> shift;
    let rounded = if magnitude < (128 - bias) << 23 { subnormal } else { normal };
    // From 2^16 on it is too large in any case, and the sum above may have wrapped.
    let bounded = if magnitude >= 0x4780_0000 || rounded > largest { largest } else { rounded };
    if magnitude > 0x7F80_0000 { 0x7F } else { sign | bounded as u8 }
}

/// f32 to e4m3.
#[inline(always)]
pub fn narrow_e4m3(value: f32) -> u8 {
    narrow::<3>(value, 0x7E)
}

/// f32 to e5m2.
#[inline(always)]
pub fn narrow_e5m2(value: f32) -> u8 {
    narrow::<2>(value, 0x7B)
}

/// e4m3 to f16, exactly.
#[inline(always)]
pub fn widen_e4m3(bits: u8) -> u16 {
    let bits = u16::from(bits);
    let magnitude = bits & 0x7F;
    // Read as f16 the number is 2^8 times too small.
    let scaled = narrow_f16(widen_f16(magnitude << 7) * 256.0);
    if magnitude == 0x7F { NAN } else { scaled | (bits & 0x80) << 8 }
}

/// e5m2 to f16: the same number with more bits.
#[inline(always)]
pub fn widen_e5m2(bits: u8) -> u16 {
    if bits & 0x7F > 0x7C { NAN } else { u16::from(bits) << 8 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::numerics::Rounding;
    use crate::numerics::convert::{Conversion, Encoding};

    fn conversion(to: Encoding, from: Encoding, finite: bool) -> Conversion {
        let rounding = Rounding::Nearest;
        Conversion { to, from, rounding, integral: false, flush: false, saturate: false, relu: false, finite }
    }

    #[test]
    fn all_of_8_bits_are_widened() {
        for bits in 0..=u8::MAX {
            let wide = |from| conversion(Encoding::F16, from, false).convert(bits.into()) as u16;
            assert_eq!(
                (widen_e4m3(bits), widen_e5m2(bits)),
                (wide(Encoding::E4m3), wide(Encoding::E5m2)),
                "{bits:02x}"
            );
        }
    }

    /// Every f16, which holds all ties of both formats, its neighbours among f32, and every 4999th f32.
    #[test]
    fn narrowing_rounds_to_nearest_even() {
        let halves = (0..=u16::MAX).map(|half| widen_f16(half).to_bits());
        let around = halves.flat_map(|bits| [bits.wrapping_sub(1), bits, bits.wrapping_add(1)]);
        let (four, five) =
            (conversion(Encoding::E4m3, Encoding::F32, true), conversion(Encoding::E5m2, Encoding::F32, true));
        for bits in around.chain((0..=u32::MAX).step_by(4999)) {
            let value = f32::from_bits(bits);
            let expected = (four.convert(bits.into()) as u8, five.convert(bits.into()) as u8);
            assert_eq!((narrow_e4m3(value), narrow_e5m2(value)), expected, "{bits:08x}");
        }
    }
}
