//! Sums of blocks of products as the chips compute them.

use std::arch::x86_64::*;

use super::exponents::{Exponents, ZERO_EXPONENT, find_exponents, largest_of_products};
use super::operands::{F16, accumulator, expand, from_singles, store};
use crate::tensor_core::tile::{Register, TileOperands};

/// Biased exponents of largest addends, below which products may be too small for single precision.
const LEAST_LARGEST: i32 = 29;

/// Biased exponents of products, above which they may be too large.
const MOST_LARGEST: i32 = 253;

/// Blocks of products, added as the chips do; false if there are infinities, NaNs, or results that are very small.
///
/// Two passes. The first finds the largest exponent of each result's addends. The second computes the products exactly,
/// scales each by a power of two so that the bits which count are an integer, cuts the others off, and adds.
#[target_feature(enable = "avx2,fma,f16c,bmi2,lzcnt,popcnt")]
#[inline]
pub(super) fn aligned<const FORMAT: u8, const K: usize, const BLOCK: usize, const EXTRA: i32, const HALF: bool>(
    tile: &TileOperands,
    results: &mut [Register; 4],
) -> bool {
    let mut exponents = Exponents { a: [[[ZERO_EXPONENT; 8]; 16]; 2], b: [[ZERO_EXPONENT; 8]; 16] };
    let mut special = find_exponents::<FORMAT, K, HALF>(tile, &mut exponents);
    if _mm256_testz_si256(special, special) == 0 {
        return false;
    }
    let expanded = expand::<FORMAT, K, HALF>(tile);
    let mut largest_products = [[[0; 8]; 16]; 2];
    for (block, largest) in largest_products.iter_mut().enumerate().take(K / BLOCK) {
        largest_of_products::<BLOCK>(&exponents, block, largest);
    }
    for first in [0, 4, 8, 12] {
        let mut sums: [__m256; 4] = std::array::from_fn(|row| accumulator::<HALF>(tile, first + row));
        for block in 0..K / BLOCK {
            let mut scales = [_mm256_setzero_ps(); 4];
            let mut largest = [_mm256_setzero_si256(); 4];
            let mut products = [_mm256_setzero_si256(); 4];
            for row in 0..4 {
                products[row] = _mm256_cvtepi16_epi32(bytemuck::cast(largest_products[block % 2][first + row]));
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
                let total = _mm256_add_epi32(totals[row], addend);
                // Sixteen products of the same sign, each close to four, may leave no room for the accumulator.
                let (changed, differs) = (_mm256_xor_si256(totals[row], total), _mm256_xor_si256(addend, total));
                special = _mm256_or_si256(special, _mm256_srai_epi32::<31>(_mm256_and_si256(changed, differs)));
                let added = finish::<HALF>(total, unit);
                // Without a product the accumulator is the result, however small; zero becomes positive.
                let nothing = _mm256_castsi256_ps(products[row]);
                sums[row] = _mm256_blendv_ps(added, _mm256_add_ps(sums[row], _mm256_setzero_ps()), nothing);
            }
        }
        for (row, sum) in sums.into_iter().enumerate() {
            store::<HALF>(results, first + row, sum);
        }
    }
    _mm256_testz_si256(special, special) == 1
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

/// The sums of integers in units of a power of two, cut off to single precision, or rounded to half precision.
#[target_feature(enable = "avx2,fma,f16c,bmi2,lzcnt,popcnt")]
#[inline]
fn finish<const HALF: bool>(total: __m256i, unit: __m256) -> __m256 {
    let magnitude = _mm256_abs_epi32(total);
    let nearest = _mm256_cvtepi32_ps(magnitude);
    // What was rounded up is one too large in the last place. The difference is right for 2^31 as well.
    let excess = _mm256_sub_epi32(_mm256_cvttps_epi32(nearest), magnitude);
    let rounded_up = _mm256_cmpgt_epi32(excess, _mm256_setzero_si256());
    let mut kept = _mm256_add_epi32(_mm256_castps_si256(nearest), rounded_up);
    if HALF {
        // A bit that was cut off is remembered in the last place, so that ties are told from what lies beside them.
        let exact = _mm256_cmpeq_epi32(excess, _mm256_setzero_si256());
        kept = _mm256_or_si256(kept, _mm256_andnot_si256(exact, _mm256_set1_epi32(1)));
    }
    let sign = _mm256_and_si256(total, _mm256_set1_epi32(i32::MIN));
    let result = _mm256_mul_ps(_mm256_castsi256_ps(_mm256_or_si256(kept, sign)), unit);
    if HALF {
        let rounded = _mm256_cvtph_ps(_mm256_cvtps_ph::<_MM_FROUND_TO_NEAREST_INT>(result));
        _mm256_add_ps(rounded, _mm256_setzero_ps())
    } else {
        result
    }
}
