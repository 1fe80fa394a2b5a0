//! f16 and bf16 beside f32: the conversions that kernels do all the time, written so that loops over lanes vectorise.

/// The NaN that arithmetic in f16 and in bf16 makes.
pub const NAN: u16 = 0x7FFF;

/// The NaN that arithmetic in f32 makes.
pub const NAN_32: u32 = 0x7FFF_FFFF;

/// f16 to f32, exactly; every NaN becomes the one that arithmetic makes.
#[inline(always)]
pub fn widen_f16(bits: u16) -> f32 {
    let sign = u32::from(bits & 0x8000) << 16;
    let magnitude = u32::from(bits & 0x7FFF);
    // Read as f32 the number is 2^112 times too small, subnormal ones included; the product is exact.
    let scaled = f32::from_bits(magnitude << 13) * f32::from_bits(0x7780_0000);
    let widened = match magnitude {
        0x7C00.. => 0x7F80_0000 | magnitude << 13,
        _ => scaled.to_bits(),
    };
    f32::from_bits(if magnitude > 0x7C00 { NAN_32 } else { widened | sign })
}

/// bf16 to f32, exactly; NaN keeps its bits.
#[inline(always)]
pub const fn widen_bf16(bits: u16) -> f32 {
    f32::from_bits((bits as u32) << 16)
}

/// f32 to the nearest f16, ties to even.
#[inline(always)]
pub fn narrow_f16(value: f32) -> u16 {
    let bits = value.to_bits();
    let sign = (bits >> 16) as u16 & 0x8000;
    let magnitude = bits & 0x7FFF_FFFF;
    // Below 2^-14: adding 2^-1 puts the last bit of f16's subnormal numbers in the last place of an f32.
    let subnormal = (f32::from_bits(magnitude) + 0.5).to_bits().wrapping_sub(0x3F00_0000);
    let normal = magnitude.wrapping_add(0xC800_0FFF).wrapping_add(magnitude >> 13 & 1) >> 13;
    let rounded = if magnitude < 0x3880_0000 { subnormal } else { normal };
    let bounded = if magnitude >= 0x4780_0000 { 0x7C00 } else { rounded };
    if magnitude > 0x7F80_0000 { NAN } else { sign | bounded as u16 }
}

/// f32 to the nearest bf16, ties to even.
#[inline(always)]
pub fn narrow_bf16(value: f32) -> u16 {
    let bits = value.to_bits();
    let rounded = bits.wrapping_add(0x7FFF).wrapping_add(bits >> 16 & 1) >> 16;
    if bits & 0x7FFF_FFFF > 0x7F80_0000 { NAN } else { rounded as u16 }
}

/// A sum that rounding once more cannot spoil: where it is not exact, its last bit is odd. Rounding it to 11 bits or
/// fewer gives what rounding the exact sum gives.
#[inline(always)]
pub fn odd_sum_32(a: f32, b: f32) -> f32 {
    let sum = a + b;
    let other = sum - a;
    let error = (a - (sum - other)) + (b - other);
    odd_32(sum, error)
}

/// The odd neighbour of a result on the side of its error; itself if it is exact or odd. An error that is NaN comes of
/// infinities, which are right as they are.
#[inline(always)]
fn odd_32(result: f32, error: f32) -> f32 {
    let bits = result.to_bits();
    // Away from zero if the error has the sign of the result.
    let step = if (error > 0.0) == (result > 0.0) { 1 } else { u32::MAX };
    let even = bits & 1 == 0;
    let inexact = error.abs() > 0.0;
    f32::from_bits(if inexact && even { bits.wrapping_add(step) } else { bits })
}

/// As [`odd_sum_32`] for f64: rounding it to f32 gives what rounding the exact sum gives.
#[inline(always)]
pub fn odd_sum_64(a: f64, b: f64) -> f64 {
    let sum = a + b;
    let other = sum - a;
    let error = (a - (sum - other)) + (b - other);
    let bits = sum.to_bits();
    let step = if (error > 0.0) == (sum > 0.0) { 1 } else { u64::MAX };
    let inexact = error.abs() > 0.0;
    f64::from_bits(if inexact && bits & 1 == 0 { bits.wrapping_add(step) } else { bits })
}

/// `a * b + c` in f32, rounded once, without an instruction for it: the product is exact in f64.
#[inline(always)]
pub fn fused_32(a: f32, b: f32, c: f32) -> f32 {
    odd_sum_64(f64::from(a) * f64::from(b), f64::from(c)) as f32
}

/// The f16 nearest to `a * b + c`: the product of two f16 is exact in f32.
#[inline(always)]
pub fn fused_f16(a: u16, b: u16, c: u16) -> u16 {
    narrow_f16(odd_sum_32(widen_f16(a) * widen_f16(b), widen_f16(c)))
}

/// The bf16 nearest to `a * b + c`: the product of two bf16 may leave f32's range, so f64 holds it.
#[inline(always)]
pub fn fused_bf16(a: u16, b: u16, c: u16) -> u16 {
    let product = f64::from(widen_bf16(a)) * f64::from(widen_bf16(b));
    narrow_64_bf16(odd_sum_64(product, f64::from(widen_bf16(c))))
}

/// The bf16 nearest to an f64, in one step: f32 in between is rounded to odd.
#[inline(always)]
pub fn narrow_64_bf16(value: f64) -> u16 {
    let nearest = value as f32;
    let error = value - f64::from(nearest);
    // An error is either exact or, beyond f32's range, infinite: then nothing is left to round.
    let bits = nearest.to_bits();
    let step = if (error > 0.0) == (value > 0.0) { 1 } else { u32::MAX };
    let inexact = error != 0.0 && error.abs() < f64::INFINITY;
    narrow_bf16(f32::from_bits(if inexact && bits & 1 == 0 { bits.wrapping_add(step) } else { bits }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::numerics::float::{FloatKind, FloatRules};
    use crate::numerics::rounding::Rounding;
    use gpuemu_tensor::FloatFormat;

    const fn rules(kind: FloatKind) -> FloatRules {
        FloatRules { kind, rounding: Rounding::Nearest, flush: false, saturate: false, relu: false }
    }

    #[test]
    fn every_half_comes_back() {
        for bits in 0..=u16::MAX {
            for (format, wide, back) in [
                (FloatFormat::F16, widen_f16(bits), narrow_f16(widen_f16(bits))),
                (FloatFormat::BF16, widen_bf16(bits), narrow_bf16(widen_bf16(bits))),
            ] {
                let value = format.decode(u64::from(bits));
                if value.is_nan() {
                    assert!(wide.is_nan() && back == NAN);
                } else {
                    assert_eq!((f64::from(wide).to_bits(), back), (value.to_bits(), bits));
                }
            }
        }
    }

    /// Every 251st number and the neighbours of every middle between two f16.
    #[test]
    fn narrowing_rounds_to_nearest_even() {
        let middles = (0..0x7BFF_u16).map(|half| f32::midpoint(widen_f16(half), widen_f16(half + 1)).to_bits());
        let around = middles.flat_map(|bits| [bits - 1, bits, bits + 1]);
        for bits in (0..0x7F80_0000_u32).step_by(251).chain(around) {
            for bits in [bits, bits | 0x8000_0000] {
                let value = f32::from_bits(bits);
                for (format, narrow) in [(FloatFormat::F16, narrow_f16(value)), (FloatFormat::BF16, narrow_bf16(value))]
                {
                    let expected = format.round(f64::from(value));
                    assert_eq!(format.decode(u64::from(narrow)).to_bits(), expected.to_bits(), "{bits:08x}");
                }
            }
        }
    }

    proptest::proptest! {
        #![proptest_config(proptest::prelude::ProptestConfig {
            cases: 200_000, failure_persistence: None, rng_seed: proptest::test_runner::RngSeed::Fixed(7),
            ..Default::default()
        })]

        #[test]
        fn fused_forms_round_once(a: u32, b: u32, c: u32, near in 0_u32..32) {
            // Half of the addends lie near the product, where cancellation and ties are.
            let close = |bits: u32, product: f32| if near < 20 { bits } else { product.to_bits() ^ (bits >> near) };
            let expected = rules(FloatKind::F32).fused(a.into(), b.into(), c.into()) as u32;
            let [x, y, z] = [a, b, c].map(f32::from_bits);
            let got = fused_32(x, y, z);
            assert_eq!(if got.is_nan() { NAN_32 } else { got.to_bits() }, expected);
            let c = close(c, -(x * y));
            let expected = rules(FloatKind::F32).fused(a.into(), b.into(), c.into()) as u32;
            let got = fused_32(x, y, f32::from_bits(c));
            assert_eq!(if got.is_nan() { NAN_32 } else { got.to_bits() }, expected);
            let [a, b, c] = [a, b, c].map(|bits| bits as u16);
            let expected = rules(FloatKind::F16).fused(a.into(), b.into(), c.into()) as u16;
            assert_eq!(fused_f16(a, b, c), expected);
            let expected = rules(FloatKind::Bf16).fused(a.into(), b.into(), c.into()) as u16;
            assert_eq!(fused_bf16(a, b, c), expected);
        }
    }
}
