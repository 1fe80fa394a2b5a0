//! Matrices of 8 by 8 halves, transposed.

use super::tile::Register;

/// A matrix of 8 by 8 halves in a register of a warp, transposed; `movmatrix` does just this.
#[inline(always)]
pub fn transpose(register: &Register) -> Register {
    bytemuck::cast(transpose_rows(&bytemuck::cast(*register)))
}

/// Eight rows of eight halves, transposed.
#[cfg(target_arch = "x86_64")]
#[allow(unsafe_code, reason = "the only way to call code for an instruction set")]
#[inline(always)]
pub(super) fn transpose_rows(rows: &[[u16; 8]; 8]) -> [[u16; 8]; 8] {
    // SAFETY: every x86-64 has SSE2.
    unsafe { transpose_vectors(rows) }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "sse2")]
#[inline]
fn transpose_vectors(rows: &[[u16; 8]; 8]) -> [[u16; 8]; 8] {
    use std::arch::x86_64::{
        __m128i, _mm_unpackhi_epi16, _mm_unpackhi_epi32, _mm_unpackhi_epi64, _mm_unpacklo_epi16, _mm_unpacklo_epi32,
        _mm_unpacklo_epi64,
    };
    let rows: [__m128i; 8] = bytemuck::cast(*rows);
    let mut columns = [rows[0]; 8];
    for high in 0..2 {
        let pair = |first: usize| match high {
            0 => _mm_unpacklo_epi16(rows[first], rows[first + 1]),
            _ => _mm_unpackhi_epi16(rows[first], rows[first + 1]),
        };
        let [first, second, third, fourth] = [pair(0), pair(2), pair(4), pair(6)];
        let (left, right) = (_mm_unpacklo_epi32(first, second), _mm_unpacklo_epi32(third, fourth));
        columns[4 * high] = _mm_unpacklo_epi64(left, right);
        columns[4 * high + 1] = _mm_unpackhi_epi64(left, right);
        let (left, right) = (_mm_unpackhi_epi32(first, second), _mm_unpackhi_epi32(third, fourth));
        columns[4 * high + 2] = _mm_unpacklo_epi64(left, right);
        columns[4 * high + 3] = _mm_unpackhi_epi64(left, right);
    }
    bytemuck::cast(columns)
}

/// Eight rows of eight halves, transposed.
#[cfg(not(target_arch = "x86_64"))]
#[inline(always)]
pub(super) fn transpose_rows(rows: &[[u16; 8]; 8]) -> [[u16; 8]; 8] {
    std::array::from_fn(|column| std::array::from_fn(|row| rows[row][column]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_become_columns() {
        let rows: [[u16; 8]; 8] = std::array::from_fn(|row| std::array::from_fn(|column| (16 * row + column) as u16));
        let turned = transpose_rows(&rows);
        for (row, values) in turned.iter().enumerate() {
            for (column, value) in values.iter().enumerate() {
                assert_eq!(usize::from(*value), 16 * column + row);
            }
        }
    }
}
