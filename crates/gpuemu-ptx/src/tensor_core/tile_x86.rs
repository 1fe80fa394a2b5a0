//! Tiles on x86-64 with AVX2.
//!
//! A row of 8 results is one vector. Registers hold them in an order that needs no shuffling: row `g` of the first 8 rows
//! is lanes 4g to 4g+3 of the first register, which are its even columns, then those of the second, its odd ones. The
//! columns of B are put in the same order.

use std::arch::x86_64::*;

use super::element::{Element, NAN_SINGLE, TF32_BITS};
use super::model::TensorCore;
use super::tile::{Compute, Register, TileOperands};
use crate::registers::{LANES, Level};

/// Half precision, among the types of operands.
const F16: u8 = 0;
/// bf16.
const BF16: u8 = 1;
/// tf32.
const TF32: u8 = 2;

/// The exponent that stands for zero. The sum of two such, and of one with any other, is below every other sum.
const ZERO_EXPONENT: i16 = -4096;

/// Biased exponents of largest addends, below which products may be too small for single precision.
const LEAST_LARGEST: i32 = 29;

/// Biased exponents of products, above which they may be too large.
const MOST_LARGEST: i32 = 253;

/// Operands as single-precision numbers.
#[repr(align(64))]
struct Expanded {
    /// Row by row.
    a: [[f32; 16]; 16],
    /// Row by row, columns in the order of the results.
    b: [[f32; 8]; 16],
}

/// Biased exponents of the operands.
#[repr(align(64))]
struct Exponents {
    /// Eight along k, row by row, then the next eight.
    a: [[[i16; 8]; 16]; 2],
    /// By k, columns in the order of the results.
    b: [[i16; 8]; 16],
}

/// The way to compute tiles with these operands, if there is one.
pub(super) fn kernel(
    operand: Element,
    k: usize,
    result: Element,
    model: TensorCore,
    level: Level,
) -> Option<Compute> {
    if level < Level::Avx2 {
        return None;
    }
    let wide = level >= Level::Avx512;
    macro_rules! fused {
        ($format:expr, $k:literal, $half:literal) => {
            Some(if wide { fused_avx512::<$format, $k, $half> } else { fused_avx2::<$format, $k, $half> })
        };
    }
    macro_rules! aligned {
        ($format:expr, $k:literal, $block:literal, $extra:literal, $half:literal) => {
            Some(if wide {
                aligned_avx512::<$format, $k, $block, $extra, $half>
            } else {
                aligned_avx2::<$format, $k, $block, $extra, $half>
            })
        };
    }
    use Element::{Bf16, F16 as Half, F32, Tf32};
    use TensorCore::{A100, H100, Ieee};
    match (operand, k, result, model) {
        (Half, 16, F32, Ieee) => fused!(F16, 16, false),
        (Half, 16, Half, Ieee) => fused!(F16, 16, true),
        (Half, 8, F32, Ieee) => fused!(F16, 8, false),
        (Half, 8, Half, Ieee) => fused!(F16, 8, true),
        (Bf16, 16, F32, Ieee) => fused!(BF16, 16, false),
        (Bf16, 8, F32, Ieee) => fused!(BF16, 8, false),
        (Tf32, 8, F32, Ieee) => fused!(TF32, 8, false),
        (Tf32, 4, F32, Ieee) => fused!(TF32, 4, false),
        (Half, 16, F32, H100) => aligned!(F16, 16, 16, 2, false),
        (Half, 16, Half, H100) => aligned!(F16, 16, 16, 2, true),
        (Half, 8, F32, H100) => aligned!(F16, 8, 8, 2, false),
        (Half, 8, Half, H100) => aligned!(F16, 8, 8, 2, true),
        (Bf16, 16, F32, H100) => aligned!(BF16, 16, 16, 2, false),
        (Bf16, 8, F32, H100) => aligned!(BF16, 8, 8, 2, false),
        (Tf32, 8, F32, H100) => aligned!(TF32, 8, 8, 2, false),
        (Tf32, 4, F32, H100) => aligned!(TF32, 4, 4, 2, false),
        (Half, 16, F32, A100) => aligned!(F16, 16, 8, 1, false),
        (Half, 16, Half, A100) => aligned!(F16, 16, 8, 1, true),
        (Half, 8, F32, A100) => aligned!(F16, 8, 8, 1, false),
        (Half, 8, Half, A100) => aligned!(F16, 8, 8, 1, true),
        (Bf16, 16, F32, A100) => aligned!(BF16, 16, 8, 1, false),
        (Bf16, 8, F32, A100) => aligned!(BF16, 8, 8, 1, false),
        (Tf32, 8, F32, A100) => aligned!(TF32, 8, 4, 1, false),
        (Tf32, 4, F32, A100) => aligned!(TF32, 4, 4, 1, false),
        _ => None,
    }
}

#[allow(unsafe_code, reason = "the only way to call code for an instruction set")]
fn fused_avx2<const FORMAT: u8, const K: usize, const HALF: bool>(tile: &TileOperands) -> Option<[Register; 4]> {
    // SAFETY: `kernel` hands this out only at a level that has the features.
    unsafe { fused::<FORMAT, K, HALF>(tile) }
}

#[allow(unsafe_code, reason = "the only way to call code for an instruction set")]
fn fused_avx512<const FORMAT: u8, const K: usize, const HALF: bool>(tile: &TileOperands) -> Option<[Register; 4]> {
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,f16c,bmi2,lzcnt,popcnt")]
    fn wide<const FORMAT: u8, const K: usize, const HALF: bool>(tile: &TileOperands) -> Option<[Register; 4]> {
        fused::<FORMAT, K, HALF>(tile)
    }
    // SAFETY: `kernel` hands this out only at a level that has the features.
    unsafe { wide::<FORMAT, K, HALF>(tile) }
}

#[allow(unsafe_code, reason = "the only way to call code for an instruction set")]
fn aligned_avx2<const FORMAT: u8, const K: usize, const BLOCK: usize, const EXTRA: i32, const HALF: bool>(
    tile: &TileOperands,
) -> Option<[Register; 4]> {
    // SAFETY: `kernel` hands this out only at a level that has the features.
    unsafe { aligned::<FORMAT, K, BLOCK, EXTRA, HALF>(tile) }
}

#[allow(unsafe_code, reason = "the only way to call code for an instruction set")]
fn aligned_avx512<const FORMAT: u8, const K: usize, const BLOCK: usize, const EXTRA: i32, const HALF: bool>(
    tile: &TileOperands,
) -> Option<[Register; 4]> {
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,f16c,bmi2,lzcnt,popcnt")]
    fn wide<const FORMAT: u8, const K: usize, const BLOCK: usize, const EXTRA: i32, const HALF: bool>(
        tile: &TileOperands,
    ) -> Option<[Register; 4]> {
        aligned::<FORMAT, K, BLOCK, EXTRA, HALF>(tile)
    }
    // SAFETY: `kernel` hands this out only at a level that has the features.
    unsafe { wide::<FORMAT, K, BLOCK, EXTRA, HALF>(tile) }
}

/// Fused multiply-adds, k ascending.
#[target_feature(enable = "avx2,fma,f16c,bmi2,lzcnt,popcnt")]
#[inline]
fn fused<const FORMAT: u8, const K: usize, const HALF: bool>(tile: &TileOperands) -> Option<[Register; 4]> {
    let expanded = expand::<FORMAT, K, HALF>(tile);
    let mut results = [[0; LANES]; 4];
    for first in [0, 8] {
        let mut sums: [__m256; 8] = std::array::from_fn(|row| accumulator::<HALF>(tile, first + row));
        for place in 0..K {
            let b = from_singles(&expanded.b[place]);
            for (row, sum) in sums.iter_mut().enumerate() {
                *sum = _mm256_fmadd_ps(_mm256_set1_ps(expanded.a[first + row][place]), b, *sum);
            }
        }
        for (row, sum) in sums.into_iter().enumerate() {
            let nan = _mm256_castsi256_ps(_mm256_set1_epi32(NAN_SINGLE as i32));
            let result = _mm256_blendv_ps(sum, nan, _mm256_cmp_ps::<_CMP_UNORD_Q>(sum, sum));
            store::<HALF>(&mut results, first + row, result);
        }
    }
    Some(results)
}

/// Blocks of products, added as the chips do; none if there are infinities, NaNs, or results that are very small.
///
/// Two passes. The first finds the largest exponent of each result's addends. The second computes the products exactly,
/// scales each by a power of two so that the bits which count are an integer, cuts the others off, and adds.
#[target_feature(enable = "avx2,fma,f16c,bmi2,lzcnt,popcnt")]
#[inline]
fn aligned<const FORMAT: u8, const K: usize, const BLOCK: usize, const EXTRA: i32, const HALF: bool>(
    tile: &TileOperands,
) -> Option<[Register; 4]> {
    let (exponents, mut special) = exponents::<FORMAT, K, HALF>(tile);
    if _mm256_testz_si256(special, special) == 0 {
        return None;
    }
    let expanded = expand::<FORMAT, K, HALF>(tile);
    let mut results = [[0; LANES]; 4];
    for first in [0, 4, 8, 12] {
        let mut sums: [__m256; 4] = std::array::from_fn(|row| accumulator::<HALF>(tile, first + row));
        for block in 0..K / BLOCK {
            let pairs: [__m256i; 2] =
                std::array::from_fn(|pair| largest_of_products::<BLOCK>(&exponents, first + 2 * pair, block * BLOCK));
            let mut scales = [_mm256_setzero_ps(); 4];
            let mut largest = [_mm256_setzero_si256(); 4];
            let mut products = [_mm256_setzero_si256(); 4];
            for row in 0..4 {
                let of_row = match row % 2 {
                    0 => _mm256_castsi256_si128(pairs[row / 2]),
                    _ => _mm256_extracti128_si256::<1>(pairs[row / 2]),
                };
                products[row] = _mm256_cvtepi16_epi32(of_row);
                let both = largest_addend::<FORMAT, HALF>(products[row], sums[row]);
                special = _mm256_or_si256(special, both.special);
                largest[row] = both.exponent;
                let scale = _mm256_sub_epi32(_mm256_set1_epi32(254 + 23 + EXTRA), largest[row]);
                scales[row] = _mm256_castsi256_ps(_mm256_slli_epi32::<23>(scale));
            }
            let mut totals = [_mm256_setzero_si256(); 4];
            for place in block * BLOCK..(block + 1) * BLOCK {
                let b = from_singles(&expanded.b[place]);
                for row in 0..4 {
                    let product = _mm256_mul_ps(_mm256_set1_ps(expanded.a[first + row][place]), b);
                    let addend = _mm256_cvttps_epi32(_mm256_mul_ps(product, scales[row]));
                    totals[row] = _mm256_add_epi32(totals[row], addend);
                }
            }
            for row in 0..4 {
                let addend = _mm256_cvttps_epi32(_mm256_mul_ps(sums[row], scales[row]));
                let unit = _mm256_sub_epi32(largest[row], _mm256_set1_epi32(23 + EXTRA));
                let unit = _mm256_castsi256_ps(_mm256_slli_epi32::<23>(unit));
                let added = finish::<HALF>(totals[row], addend, unit);
                // Without a product the accumulator is the result, however small; zero becomes positive.
                let nothing = _mm256_castsi256_ps(products[row]);
                sums[row] = _mm256_blendv_ps(added, _mm256_add_ps(sums[row], _mm256_setzero_ps()), nothing);
            }
        }
        for (row, sum) in sums.into_iter().enumerate() {
            store::<HALF>(&mut results, first + row, sum);
        }
    }
    (_mm256_testz_si256(special, special) == 1).then_some(results)
}

/// The largest addends of a row.
struct Largest {
    /// Its biased exponent, in the bounds that the arithmetic needs.
    exponent: __m256i,
    /// Not zero where there is something that it cannot compute.
    special: __m256i,
}

/// The largest addends of a row: the largest of the products, as the sum of the exponents of their operands, and of the
/// accumulators.
#[target_feature(enable = "avx2,fma,f16c,bmi2,lzcnt,popcnt")]
#[inline]
fn largest_addend<const FORMAT: u8, const HALF: bool>(products: __m256i, accumulator: __m256) -> Largest {
    let bits = _mm256_castps_si256(accumulator);
    let field = _mm256_and_si256(_mm256_srli_epi32::<23>(bits), _mm256_set1_epi32(0xFF));
    let mut special = _mm256_cmpeq_epi32(field, _mm256_set1_epi32(0xFF));
    let of_accumulator = if HALF {
        // Subnormal numbers of half precision have the exponent of its smallest normal ones.
        let zero = _mm256_cmpeq_epi32(field, _mm256_setzero_si256());
        _mm256_andnot_si256(zero, _mm256_max_epi32(field, _mm256_set1_epi32(127 - 14)))
    } else {
        field
    };
    let bias = if FORMAT == F16 { 127 - 2 * 15 } else { 127 - 2 * 127 };
    let of_products = _mm256_add_epi32(products, _mm256_set1_epi32(bias));
    let largest = _mm256_max_epi32(of_products, of_accumulator);
    if FORMAT != F16 {
        let too_small = _mm256_cmpgt_epi32(_mm256_set1_epi32(LEAST_LARGEST), largest);
        let too_large = _mm256_cmpgt_epi32(of_products, _mm256_set1_epi32(MOST_LARGEST));
        let out_of_range = _mm256_or_si256(too_small, too_large);
        // Where no product counts, nothing is computed.
        let nothing = _mm256_srai_epi32::<31>(products);
        special = _mm256_or_si256(special, _mm256_andnot_si256(nothing, out_of_range));
    }
    Largest { exponent: _mm256_max_epi32(largest, _mm256_set1_epi32(LEAST_LARGEST)), special }
}

/// The largest sums of exponents of two rows, the first in the low half.
#[target_feature(enable = "avx2,fma,f16c,bmi2,lzcnt,popcnt")]
#[inline]
fn largest_of_products<const BLOCK: usize>(exponents: &Exponents, row: usize, first: usize) -> __m256i {
    let mut largest = _mm256_set1_epi16(2 * ZERO_EXPONENT);
    let mut place = first;
    while place < first + BLOCK {
        let rows: [[i16; 8]; 2] = [exponents.a[place / 8][row], exponents.a[place / 8][row + 1]];
        let rows: __m256i = bytemuck::cast(rows);
        for inner in 0..BLOCK.min(8) {
            let at = (place + inner) % 8;
            let element = (2 * at + (2 * at + 1) * 256) as i16;
            let a = _mm256_shuffle_epi8(rows, _mm256_set1_epi16(element));
            let b = _mm256_broadcastsi128_si256(bytemuck::cast(exponents.b[place + inner]));
            largest = _mm256_max_epi16(largest, _mm256_add_epi16(a, b));
        }
        place += 8;
    }
    largest
}

/// The sum of integers and accumulators, in units of a power of two, cut off or rounded to the type of the result.
#[target_feature(enable = "avx2,fma,f16c,bmi2,lzcnt,popcnt")]
#[inline]
fn finish<const HALF: bool>(total: __m256i, accumulator: __m256i, unit: __m256) -> __m256 {
    let low = finish_four::<HALF>(
        _mm256_castsi256_si128(total),
        _mm256_castsi256_si128(accumulator),
        _mm256_castps256_ps128(unit),
    );
    let high = finish_four::<HALF>(
        _mm256_extracti128_si256::<1>(total),
        _mm256_extracti128_si256::<1>(accumulator),
        _mm256_extractf128_ps::<1>(unit),
    );
    let result = _mm256_set_m128(high, low);
    if HALF {
        let rounded = _mm256_cvtph_ps(_mm256_cvtps_ph::<_MM_FROUND_TO_NEAREST_INT>(result));
        _mm256_add_ps(rounded, _mm256_setzero_ps())
    } else {
        result
    }
}

/// Four of them, cut off to single precision. Where half precision comes next, a bit that was cut off is remembered in
/// the last place, so that ties are told from what lies beside them.
#[target_feature(enable = "avx2,fma,f16c,bmi2,lzcnt,popcnt")]
#[inline]
fn finish_four<const HALF: bool>(total: __m128i, accumulator: __m128i, unit: __m128) -> __m128 {
    let sum = _mm256_add_pd(_mm256_cvtepi32_pd(total), _mm256_cvtepi32_pd(accumulator));
    let value = _mm256_castpd_si256(_mm256_mul_pd(sum, _mm256_cvtps_pd(unit)));
    let lost = _mm256_set1_epi64x((1 << 29) - 1);
    let mut kept = _mm256_andnot_si256(lost, value);
    if HALF {
        let exact = _mm256_cmpeq_epi64(_mm256_and_si256(value, lost), _mm256_setzero_si256());
        kept = _mm256_or_si256(kept, _mm256_andnot_si256(exact, _mm256_set1_epi64x(1 << 29)));
    }
    _mm256_cvtpd_ps(_mm256_castsi256_pd(kept))
}

/// A row of the accumulator.
#[target_feature(enable = "avx2,fma,f16c,bmi2,lzcnt,popcnt")]
#[inline]
fn accumulator<const HALF: bool>(tile: &TileOperands, row: usize) -> __m256 {
    let (half, group) = (row / 8, row % 8);
    if HALF {
        _mm256_cvtph_ps(four_lanes(tile.c[half], group))
    } else {
        let (even, odd) = (four_lanes(tile.c[2 * half], group), four_lanes(tile.c[2 * half + 1], group));
        _mm256_castsi256_ps(_mm256_set_m128i(odd, even))
    }
}

/// Puts a row of results into their registers.
#[target_feature(enable = "avx2,fma,f16c,bmi2,lzcnt,popcnt")]
#[inline]
fn store<const HALF: bool>(results: &mut [Register; 4], row: usize, values: __m256) {
    let (half, group) = (row / 8, row % 8);
    if HALF {
        let rounded = _mm256_cvtps_ph::<_MM_FROUND_TO_NEAREST_INT>(values);
        // The NaN of single precision is cut off to that of half precision.
        results[half].as_chunks_mut::<4>().0[group] = bytemuck::cast(rounded);
    } else {
        let bits = _mm256_castps_si256(values);
        results[2 * half].as_chunks_mut::<4>().0[group] = bytemuck::cast(_mm256_castsi256_si128(bits));
        results[2 * half + 1].as_chunks_mut::<4>().0[group] = bytemuck::cast(_mm256_extracti128_si256::<1>(bits));
    }
}

/// Lanes 4g to 4g+3.
#[inline(always)]
fn four_lanes(register: &Register, group: usize) -> __m128i {
    bytemuck::cast(register.as_chunks::<4>().0[group])
}

#[inline(always)]
fn from_singles(values: &[f32; 8]) -> __m256 {
    bytemuck::cast(*values)
}

/// The column of B that stands at a place of a row.
const fn column<const HALF: bool>(place: usize) -> usize {
    if HALF { place } else { 2 * (place % 4) + place / 4 }
}

/// Operands as single-precision numbers.
#[target_feature(enable = "avx2,fma,f16c,bmi2,lzcnt,popcnt")]
#[inline]
fn expand<const FORMAT: u8, const K: usize, const HALF: bool>(tile: &TileOperands) -> Expanded {
    let mut expanded = Expanded { a: [[0.0; 16]; 16], b: [[0.0; 8]; 16] };
    if FORMAT == TF32 {
        for register in 0..K / 2 {
            for group in 0..8 {
                let words = tile.a[register].as_chunks::<4>().0[group];
                let row = &mut expanded.a[register % 2 * 8 + group];
                row.as_chunks_mut::<4>().0[register / 2] = words.map(|word| f32::from_bits(word & TF32_BITS));
            }
        }
        for register in 0..K / 4 {
            for place in 0..8 {
                let words = tile.b[register].as_chunks::<4>().0[column::<HALF>(place)];
                for (thread, word) in words.into_iter().enumerate() {
                    expanded.b[register * 4 + thread][place] = f32::from_bits(word & TF32_BITS);
                }
            }
        }
        return expanded;
    }
    for register in 0..K / 4 {
        for group in 0..8 {
            let row = &mut expanded.a[register % 2 * 8 + group];
            row.as_chunks_mut::<8>().0[register / 2] =
                bytemuck::cast(widen::<FORMAT>(four_lanes(tile.a[register], group)));
        }
    }
    for register in 0..K / 8 {
        for (place, row) in rows_of_b::<HALF>(tile.b[register]).into_iter().enumerate() {
            expanded.b[register * 8 + place] = bytemuck::cast(widen::<FORMAT>(row));
        }
    }
    expanded
}

/// Biased exponents of the operands, and what is not zero if one of them is infinite or no number.
#[target_feature(enable = "avx2,fma,f16c,bmi2,lzcnt,popcnt")]
#[inline]
fn exponents<const FORMAT: u8, const K: usize, const HALF: bool>(tile: &TileOperands) -> (Exponents, __m256i) {
    let mut exponents = Exponents { a: [[[ZERO_EXPONENT; 8]; 16]; 2], b: [[ZERO_EXPONENT; 8]; 16] };
    let mut special = _mm256_setzero_si256();
    if FORMAT == TF32 {
        let mut any = false;
        for register in 0..K / 2 {
            for (lane, &word) in tile.a[register].iter().enumerate() {
                let exponent = exponent_of_tf32(word);
                any |= exponent == 0xFF;
                exponents.a[0][register % 2 * 8 + lane / 4][register / 2 * 4 + lane % 4] = exponent;
            }
        }
        for register in 0..K / 4 {
            for place in 0..8 {
                let words = tile.b[register].as_chunks::<4>().0[column::<HALF>(place)];
                for (thread, word) in words.into_iter().enumerate() {
                    let exponent = exponent_of_tf32(word);
                    any |= exponent == 0xFF;
                    exponents.b[register * 4 + thread][place] = exponent;
                }
            }
        }
        return (exponents, _mm256_set1_epi32(-i32::from(any)));
    }
    for register in 0..K / 4 {
        for (pair, words) in tile.a[register].as_chunks::<8>().0.iter().enumerate() {
            let (fields, strange) = exponents_of_halves::<FORMAT>(bytemuck::cast(*words));
            special = _mm256_or_si256(special, strange);
            let rows: [[i16; 8]; 2] = bytemuck::cast(fields);
            exponents.a[register / 2][register % 2 * 8 + 2 * pair] = rows[0];
            exponents.a[register / 2][register % 2 * 8 + 2 * pair + 1] = rows[1];
        }
    }
    for register in 0..K / 8 {
        let rows = rows_of_b::<HALF>(tile.b[register]);
        for pair in 0..4 {
            let halves = _mm256_set_m128i(rows[2 * pair + 1], rows[2 * pair]);
            let (fields, strange) = exponents_of_halves::<FORMAT>(halves);
            special = _mm256_or_si256(special, strange);
            let rows: [[i16; 8]; 2] = bytemuck::cast(fields);
            exponents.b[register * 8 + 2 * pair] = rows[0];
            exponents.b[register * 8 + 2 * pair + 1] = rows[1];
        }
    }
    (exponents, special)
}

#[inline(always)]
fn exponent_of_tf32(word: u32) -> i16 {
    let magnitude = word & TF32_BITS & 0x7FFF_FFFF;
    if magnitude == 0 { ZERO_EXPONENT } else { (magnitude >> 23).max(1) as i16 }
}

/// Biased exponents of sixteen halves, and where they are those of infinities and NaNs.
#[target_feature(enable = "avx2,fma,f16c,bmi2,lzcnt,popcnt")]
#[inline]
fn exponents_of_halves<const FORMAT: u8>(halves: __m256i) -> (__m256i, __m256i) {
    let magnitude = _mm256_and_si256(halves, _mm256_set1_epi16(0x7FFF));
    let (field, most) = match FORMAT {
        F16 => (_mm256_srli_epi16::<10>(magnitude), 31),
        _ => (_mm256_srli_epi16::<7>(magnitude), 255),
    };
    let special = _mm256_cmpeq_epi16(field, _mm256_set1_epi16(most));
    let zero = _mm256_cmpeq_epi16(magnitude, _mm256_setzero_si256());
    let exponent = _mm256_max_epi16(field, _mm256_set1_epi16(1));
    (_mm256_blendv_epi8(exponent, _mm256_set1_epi16(ZERO_EXPONENT), zero), special)
}

/// Eight halves as single-precision numbers.
#[target_feature(enable = "avx2,fma,f16c,bmi2,lzcnt,popcnt")]
#[inline]
fn widen<const FORMAT: u8>(halves: __m128i) -> __m256 {
    match FORMAT {
        F16 => _mm256_cvtph_ps(halves),
        _ => _mm256_castsi256_ps(_mm256_slli_epi32::<16>(_mm256_cvtepu16_epi32(halves))),
    }
}

/// The eight rows of B that a register holds: lanes hold its columns.
#[target_feature(enable = "avx2,fma,f16c,bmi2,lzcnt,popcnt")]
#[inline]
fn rows_of_b<const HALF: bool>(register: &Register) -> [__m128i; 8] {
    let columns: [__m128i; 8] = std::array::from_fn(|place| four_lanes(register, column::<HALF>(place)));
    let mut rows = [_mm_setzero_si128(); 8];
    for high in 0..2 {
        let pair = |first: usize| {
            let (even, odd) = (columns[first], columns[first + 1]);
            if high == 0 { _mm_unpacklo_epi16(even, odd) } else { _mm_unpackhi_epi16(even, odd) }
        };
        let [first, second, third, fourth] = [pair(0), pair(2), pair(4), pair(6)];
        let (left, right) = (_mm_unpacklo_epi32(first, second), _mm_unpacklo_epi32(third, fourth));
        rows[4 * high] = _mm_unpacklo_epi64(left, right);
        rows[4 * high + 1] = _mm_unpackhi_epi64(left, right);
        let (left, right) = (_mm_unpackhi_epi32(first, second), _mm_unpackhi_epi32(third, fourth));
        rows[4 * high + 2] = _mm_unpacklo_epi64(left, right);
        rows[4 * high + 3] = _mm_unpackhi_epi64(left, right);
    }
    rows
}
