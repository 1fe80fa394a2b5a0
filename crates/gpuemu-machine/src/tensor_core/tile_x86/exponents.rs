//! The largest exponents of products.

use std::arch::x86_64::*;

use super::operands::{F16, TF32, row_of_tf32, rows_of_b, rows_of_tf32_b};
use crate::tensor_core::tile::TileOperands;

/// The exponent that stands for zero. The sum of two such, and of one with any other, is below every other sum.
pub(super) const ZERO_EXPONENT: i16 = -4096;

/// Biased exponents of the operands.
#[repr(align(64))]
pub(super) struct Exponents {
    /// Eight along k, row by row, then the next eight.
    pub(super) a: [[[i16; 8]; 16]; 2],
    /// By k, columns in the order of the results.
    pub(super) b: [[i16; 8]; 16],
}

/// Finds the biased exponents of the operands. What it returns is not zero if one of them is infinite or no number.
#[target_feature(enable = "avx2,fma,f16c,bmi2,lzcnt,popcnt")]
#[inline]
pub(super) fn find_exponents<const FORMAT: u8, const K: usize, const HALF: bool>(
    tile: &TileOperands,
    exponents: &mut Exponents,
) -> __m256i {
    let mut special = _mm256_setzero_si256();
    if FORMAT == TF32 {
        for (row, exponents) in exponents.a[0].iter_mut().enumerate() {
            let (fields, strange) = exponents_of_singles(row_of_tf32::<K>(tile, row));
            special = _mm256_or_si256(special, strange);
            *exponents = fields;
        }
        for (exponents, row) in exponents.b.iter_mut().zip(rows_of_tf32_b::<K, HALF>(tile)) {
            let (fields, strange) = exponents_of_singles(row);
            special = _mm256_or_si256(special, strange);
            *exponents = fields;
        }
        return special;
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
    special
}

/// Biased exponents of eight single-precision numbers, and where they are those of infinities and NaNs.
#[target_feature(enable = "avx2,fma,f16c,bmi2,lzcnt,popcnt")]
#[inline]
fn exponents_of_singles(values: __m256) -> ([i16; 8], __m256i) {
    let magnitude = _mm256_and_si256(_mm256_castps_si256(values), _mm256_set1_epi32(0x7FFF_FFFF));
    let field = _mm256_srli_epi32::<23>(magnitude);
    let special = _mm256_cmpeq_epi32(field, _mm256_set1_epi32(255));
    let zero = _mm256_cmpeq_epi32(magnitude, _mm256_setzero_si256());
    let exponent = _mm256_max_epi32(field, _mm256_set1_epi32(1));
    let exponent = _mm256_blendv_epi8(exponent, _mm256_set1_epi32(i32::from(ZERO_EXPONENT)), zero);
    let packed = _mm_packs_epi32(_mm256_castsi256_si128(exponent), _mm256_extracti128_si256::<1>(exponent));
    (bytemuck::cast(packed), special)
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

/// For each place among eight, what brings the halfword there to all eight places, in both halves of a vector.
static SPREAD: [[[u8; 16]; 2]; 8] = {
    let mut spread = [[[0; 16]; 2]; 8];
    let mut index = 0;
    while index < 8 * 2 * 16 {
        spread[index / 32][index / 16 % 2][index % 16] = (index / 32 * 2 + index % 2) as u8;
        index += 1;
    }
    spread
};

/// The largest sums of exponents of each result, for a block of products.
#[target_feature(enable = "avx2,fma,f16c,bmi2,lzcnt,popcnt")]
#[inline]
pub(super) fn largest_of_products<const BLOCK: usize>(
    exponents: &Exponents,
    block: usize,
    largest: &mut [[i16; 8]; 16],
) {
    // Four pairs of rows at a time: as many as fit the registers of the processor.
    for (quarter, largest) in largest.as_chunks_mut::<8>().0.iter_mut().enumerate() {
        let mut most = [_mm256_set1_epi16(2 * ZERO_EXPONENT); 4];
        for eighth in block * BLOCK / 8..((block + 1) * BLOCK).div_ceil(8) {
            let rows = &exponents.a[eighth % 2].as_chunks::<8>().0[quarter].as_chunks::<2>().0;
            let rows: [__m256i; 4] = std::array::from_fn(|pair| bytemuck::cast(rows[pair]));
            let first = block * BLOCK % 8;
            let b = &exponents.b.as_chunks::<8>().0[eighth % 2];
            for place in 0..BLOCK.min(8) {
                let place = (first + place) % 8;
                let spread = bytemuck::cast(SPREAD[place]);
                let b = _mm256_broadcastsi128_si256(bytemuck::cast(b[place]));
                for pair in 0..4 {
                    let sums = _mm256_add_epi16(_mm256_shuffle_epi8(rows[pair], spread), b);
                    most[pair] = _mm256_max_epi16(most[pair], sums);
                }
            }
        }
        for (two_rows, most) in largest.as_chunks_mut::<2>().0.iter_mut().zip(most) {
            *two_rows = bytemuck::cast(most);
        }
    }
}
