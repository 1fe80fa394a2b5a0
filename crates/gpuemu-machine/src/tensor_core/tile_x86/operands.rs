//! The operands and results of a tile as vectors.

use std::arch::x86_64::*;

use crate::tensor_core::element::TF32_BITS;
use crate::tensor_core::tile::{Register, TileOperands};
use crate::tensor_core::transposition::transpose_rows;

/// Half precision, among the types of operands.
pub(super) const F16: u8 = 0;
/// bf16.
pub(super) const BF16: u8 = 1;
/// tf32.
pub(super) const TF32: u8 = 2;

/// Operands as single-precision numbers.
#[repr(align(64))]
pub(super) struct Expanded {
    pub(super) a: [[f32; 16]; 16],
    /// Row by row, columns in the order of the results.
    pub(super) b: [[f32; 8]; 16],
}

#[target_feature(enable = "avx2,fma,f16c,bmi2,lzcnt,popcnt")]
#[inline]
pub(super) fn accumulator<const HALF: bool>(tile: &TileOperands, row: usize) -> __m256 {
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
pub(super) fn store<const HALF: bool>(results: &mut [Register; 4], row: usize, values: __m256) {
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
pub(super) fn four_lanes(register: &Register, group: usize) -> __m128i {
    bytemuck::cast(register.as_chunks::<4>().0[group])
}

#[inline(always)]
pub(super) fn from_singles(values: &[f32; 8]) -> __m256 {
    bytemuck::cast(*values)
}

/// The column of B that stands at a place of a row.
pub(super) const fn column<const HALF: bool>(place: usize) -> usize {
    if HALF { place } else { 2 * (place % 4) + place / 4 }
}

/// Operands as single-precision numbers.
#[target_feature(enable = "avx2,fma,f16c,bmi2,lzcnt,popcnt")]
#[inline]
pub(super) fn expand<const FORMAT: u8, const K: usize, const HALF: bool>(tile: &TileOperands) -> Expanded {
    let mut expanded = Expanded { a: [[0.0; 16]; 16], b: [[0.0; 8]; 16] };
    if FORMAT == TF32 {
        for (row, values) in expanded.a.iter_mut().enumerate() {
            values.as_chunks_mut::<8>().0[0] = bytemuck::cast(row_of_tf32::<K>(tile, row));
        }
        for (place, row) in rows_of_tf32_b::<K, HALF>(tile).into_iter().enumerate() {
            expanded.b[place] = bytemuck::cast(row);
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

/// Eight elements of tf32 along k: four lanes of one register and, if there is another, four of that.
#[target_feature(enable = "avx2,fma,f16c,bmi2,lzcnt,popcnt")]
#[inline]
pub(super) fn along_k<const K: usize>(registers: [&Register; 2], group: usize) -> __m256 {
    let high = if K == 8 { four_lanes(registers[1], group) } else { _mm_setzero_si128() };
    let words = _mm256_set_m128i(high, four_lanes(registers[0], group));
    _mm256_castsi256_ps(_mm256_and_si256(words, _mm256_set1_epi32(TF32_BITS as i32)))
}

/// A row of A of tf32.
#[target_feature(enable = "avx2,fma,f16c,bmi2,lzcnt,popcnt")]
#[inline]
pub(super) fn row_of_tf32<const K: usize>(tile: &TileOperands, row: usize) -> __m256 {
    along_k::<K>([tile.a[row / 8], tile.a[2 + row / 8]], row % 8)
}

/// The rows of B of tf32: lanes hold its columns.
#[target_feature(enable = "avx2,fma,f16c,bmi2,lzcnt,popcnt")]
#[inline]
pub(super) fn rows_of_tf32_b<const K: usize, const HALF: bool>(tile: &TileOperands) -> [__m256; 8] {
    let columns: [__m256; 8] = std::array::from_fn(|place| along_k::<K>(tile.b, column::<HALF>(place)));
    let mut rows = [_mm256_setzero_ps(); 8];
    for high in 0..2 {
        let pair = |first: usize| {
            let (even, odd) = (columns[first], columns[first + 1]);
            let mixed = if high == 0 { _mm256_unpacklo_ps(even, odd) } else { _mm256_unpackhi_ps(even, odd) };
            _mm256_castps_pd(mixed)
        };
        let [first, second, third, fourth] = [pair(0), pair(2), pair(4), pair(6)];
        for odd in 0..2 {
            let (left, right) = match odd {
                0 => (_mm256_unpacklo_pd(first, second), _mm256_unpacklo_pd(third, fourth)),
                _ => (_mm256_unpackhi_pd(first, second), _mm256_unpackhi_pd(third, fourth)),
            };
            rows[2 * high + odd] = _mm256_castpd_ps(_mm256_permute2f128_pd::<0x20>(left, right));
            rows[4 + 2 * high + odd] = _mm256_castpd_ps(_mm256_permute2f128_pd::<0x31>(left, right));
        }
    }
    rows
}

/// Eight halves as single-precision numbers.
#[target_feature(enable = "avx2,fma,f16c,bmi2,lzcnt,popcnt")]
#[inline]
pub(super) fn widen<const FORMAT: u8>(halves: __m128i) -> __m256 {
    match FORMAT {
        F16 => _mm256_cvtph_ps(halves),
        _ => _mm256_castsi256_ps(_mm256_slli_epi32::<16>(_mm256_cvtepu16_epi32(halves))),
    }
}

/// The eight rows of B that a register holds: lanes hold its columns.
#[target_feature(enable = "avx2,fma,f16c,bmi2,lzcnt,popcnt")]
#[inline]
pub(super) fn rows_of_b<const HALF: bool>(register: &Register) -> [__m128i; 8] {
    let columns = std::array::from_fn(|place| bytemuck::cast(register.as_chunks::<4>().0[column::<HALF>(place)]));
    bytemuck::cast(transpose_rows(&columns))
}
