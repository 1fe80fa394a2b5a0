//! Tiles on x86-64 with AVX2. Longer vectors gain nothing here: a row of results is one of these.
//!
//! A row of 8 results is one vector. Registers hold them in an order that needs no shuffling: row `g` of the first 8 rows
//! is lanes 4g to 4g+3 of the first register, which are its even columns, then those of the second, its odd ones. The
//! columns of B are put in the same order.

mod aligned;
mod exponents;
mod operands;

use std::arch::x86_64::*;

use aligned::aligned;
use operands::{BF16, F16, TF32, accumulator, expand, from_singles, store};

use super::element::{Element, NAN_SINGLE};
use super::model::TensorCore;
use super::plan::Plan;
use super::tile::{Kernel, Register, TileOperands, run_tiles};
use crate::registers::{Level, RegisterFile, Slot};

/// The way to compute tiles with these operands, if there is one.
pub(super) fn kernel(
    operand: Element,
    k: usize,
    result: Element,
    model: TensorCore,
    block: usize,
    level: Level,
) -> Option<Kernel> {
    if level < Level::Avx2 {
        return None;
    }
    macro_rules! fused {
        ($format:expr, $k:literal, $half:literal) => {
            Some(Kernel {
                compute: fused_at_level::<$format, $k, $half>,
                run: [run_fused_at_level::<$format, $k, $half, 1>, run_fused_at_level::<$format, $k, $half, 2>],
            })
        };
    }
    macro_rules! aligned {
        ($format:expr, $k:literal, $block:literal, $extra:literal, $half:literal) => {
            Some(Kernel {
                compute: aligned_at_level::<$format, $k, $block, $extra, $half>,
                run: [
                    run_aligned_at_level::<$format, $k, $block, $extra, $half, 1>,
                    run_aligned_at_level::<$format, $k, $block, $extra, $half, 2>,
                ],
            })
        };
    }
    use Element::{Bf16, F16 as Half, F32, Tf32};
    use TensorCore::{A100, H100, Ieee};
    match (operand, k, result, model, block) {
        (Half, 16, F32, Ieee, _) => fused!(F16, 16, false),
        (Half, 16, Half, Ieee, _) => fused!(F16, 16, true),
        (Half, 8, F32, Ieee, _) => fused!(F16, 8, false),
        (Half, 8, Half, Ieee, _) => fused!(F16, 8, true),
        (Bf16, 16, F32, Ieee, _) => fused!(BF16, 16, false),
        (Bf16, 8, F32, Ieee, _) => fused!(BF16, 8, false),
        (Tf32, 8, F32, Ieee, _) => fused!(TF32, 8, false),
        (Tf32, 4, F32, Ieee, _) => fused!(TF32, 4, false),
        (Half, 16, F32, H100, 16) => aligned!(F16, 16, 16, 2, false),
        (Half, 16, Half, H100, 16) => aligned!(F16, 16, 16, 2, true),
        (Half, 8, F32, H100, 8) => aligned!(F16, 8, 8, 2, false),
        (Half, 8, Half, H100, 8) => aligned!(F16, 8, 8, 2, true),
        (Bf16, 16, F32, H100, 16) => aligned!(BF16, 16, 16, 2, false),
        (Bf16, 8, F32, H100, 8) => aligned!(BF16, 8, 8, 2, false),
        (Tf32, 8, F32, H100, 8) => aligned!(TF32, 8, 8, 2, false),
        (Tf32, 8, F32, H100, 4) => aligned!(TF32, 8, 4, 2, false),
        (Tf32, 4, F32, H100, 4) => aligned!(TF32, 4, 4, 2, false),
        (Half, 16, F32, A100, 8) => aligned!(F16, 16, 8, 1, false),
        (Half, 16, Half, A100, 8) => aligned!(F16, 16, 8, 1, true),
        (Half, 8, F32, A100, 8) => aligned!(F16, 8, 8, 1, false),
        (Half, 8, Half, A100, 8) => aligned!(F16, 8, 8, 1, true),
        (Bf16, 16, F32, A100, 8) => aligned!(BF16, 16, 8, 1, false),
        (Bf16, 8, F32, A100, 8) => aligned!(BF16, 8, 8, 1, false),
        (Tf32, 8, F32, A100, 4) => aligned!(TF32, 8, 4, 1, false),
        (Tf32, 4, F32, A100, 4) => aligned!(TF32, 4, 4, 1, false),
        _ => None,
    }
}

#[allow(unsafe_code, reason = "the only way to call code for an instruction set")]
fn fused_at_level<const FORMAT: u8, const K: usize, const HALF: bool>(
    tile: &TileOperands,
    results: &mut [Register; 4],
) -> bool {
    // SAFETY: `kernel` hands this out only at a level that has the features.
    unsafe { fused::<FORMAT, K, HALF>(tile, results) }
}

#[allow(unsafe_code, reason = "the only way to call code for an instruction set")]
fn aligned_at_level<const FORMAT: u8, const K: usize, const BLOCK: usize, const EXTRA: i32, const HALF: bool>(
    tile: &TileOperands,
    results: &mut [Register; 4],
) -> bool {
    // SAFETY: `kernel` hands this out only at a level that has the features.
    unsafe { aligned::<FORMAT, K, BLOCK, EXTRA, HALF>(tile, results) }
}

#[allow(unsafe_code, reason = "the only way to call code for an instruction set")]
fn run_fused_at_level<const FORMAT: u8, const K: usize, const HALF: bool, const MOST: usize>(
    plan: &Plan,
    file: &mut RegisterFile,
    slots: &[Slot],
) {
    // SAFETY: `kernel` hands this out only at a level that has the features.
    unsafe { run_fused::<FORMAT, K, HALF, MOST>(plan, file, slots) }
}

#[allow(unsafe_code, reason = "the only way to call code for an instruction set")]
fn run_aligned_at_level<
    const FORMAT: u8,
    const K: usize,
    const BLOCK: usize,
    const EXTRA: i32,
    const HALF: bool,
    const MOST: usize,
>(
    plan: &Plan,
    file: &mut RegisterFile,
    slots: &[Slot],
) {
    // SAFETY: `kernel` hands this out only at a level that has the features.
    unsafe { run_aligned::<FORMAT, K, BLOCK, EXTRA, HALF, MOST>(plan, file, slots) }
}

#[target_feature(enable = "avx2,fma,f16c,bmi2,lzcnt,popcnt")]
fn run_fused<const FORMAT: u8, const K: usize, const HALF: bool, const MOST: usize>(
    plan: &Plan,
    file: &mut RegisterFile,
    slots: &[Slot],
) {
    run_tiles::<MOST>(plan, file, slots, |tile, results| fused::<FORMAT, K, HALF>(tile, results));
}

#[target_feature(enable = "avx2,fma,f16c,bmi2,lzcnt,popcnt")]
fn run_aligned<
    const FORMAT: u8,
    const K: usize,
    const BLOCK: usize,
    const EXTRA: i32,
    const HALF: bool,
    const MOST: usize,
>(
    plan: &Plan,
    file: &mut RegisterFile,
    slots: &[Slot],
) {
    run_tiles::<MOST>(plan, file, slots, |tile, results| aligned::<FORMAT, K, BLOCK, EXTRA, HALF>(tile, results));
}

/// Fused multiply-adds, k ascending.
#[target_feature(enable = "avx2,fma,f16c,bmi2,lzcnt,popcnt")]
#[inline]
fn fused<const FORMAT: u8, const K: usize, const HALF: bool>(tile: &TileOperands, results: &mut [Register; 4]) -> bool {
    let expanded = expand::<FORMAT, K, HALF>(tile);
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
            store::<HALF>(results, first + row, result);
        }
    }
    true
}
