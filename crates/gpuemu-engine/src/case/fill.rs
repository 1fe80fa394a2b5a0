//! Filling a tensor from its block streams: sixteen blocks at a time in vector lanes, groups of
//! blocks over all cores where there are many.

use multiversion::multiversion;
use rayon::prelude::*;

use gpuemu_common::DType;
use gpuemu_common::rng::{BLOCK_ELEMENTS, BlockStreams, LANES};

use super::values::Recipe;

/// Elements above which filling is spread over cores.
const PARALLEL_ELEMENTS: usize = 1 << 18;

/// Rows that are generated in lanes before they are turned into blocks.
const STRIPE: usize = 32;

/// The elements of the tensor called `input` of a case, contiguous, as bytes.
pub fn fill(dtype: DType, recipe: &Recipe, case_seed: u64, input: &str, count: usize) -> Vec<u8> {
    let mut bytes = vec![0u8; count * dtype.size()];
    fill_into(dtype, recipe, case_seed, input, &mut bytes);
    bytes
}

/// Fills bytes that already exist.
pub fn fill_into(dtype: DType, recipe: &Recipe, case_seed: u64, input: &str, bytes: &mut [u8]) {
    let group_bytes = LANES * BLOCK_ELEMENTS * dtype.size();
    let fill_group = |(group, part): (usize, &mut [u8])| {
        let blocks = part.len().div_ceil(BLOCK_ELEMENTS * dtype.size());
        let streams = BlockStreams::new(case_seed, input, group * LANES, blocks);
        let first_element = group * LANES * BLOCK_ELEMENTS;
        match (dtype, recipe) {
            (DType::F32, Recipe::Uniform { low, width }) if blocks > 1 => fill_uniform_f32(*low, *width, streams, part),
            _ if blocks == 1 => fill_block(dtype, recipe, streams, first_element, part),
            _ => fill_lanes(dtype, recipe, streams, first_element, part),
        }
    };
    if bytes.len() / dtype.size() >= PARALLEL_ELEMENTS {
        bytes.par_chunks_mut(group_bytes).enumerate().for_each(fill_group);
    } else {
        bytes.chunks_mut(group_bytes).enumerate().for_each(fill_group);
    }
}

/// One block alone: its lane of the streams, element by element.
fn fill_block(dtype: DType, recipe: &Recipe, streams: BlockStreams, first_element: usize, bytes: &mut [u8]) {
    let size = dtype.size();
    let mut stream = streams.single(0);
    for (row, chunk) in bytes.chunks_exact_mut(size).enumerate() {
        let value = recipe.value(stream.next_word(), first_element + row);
        chunk.copy_from_slice(&dtype.encode(value).to_le_bytes()[..size]);
    }
}

/// Up to `LANES` blocks, all strategies and dtypes.
fn fill_lanes(dtype: DType, recipe: &Recipe, mut streams: BlockStreams, first_element: usize, bytes: &mut [u8]) {
    let size = dtype.size();
    for row in 0..BLOCK_ELEMENTS {
        let words = streams.next_words();
        for (lane, word) in words.into_iter().enumerate() {
            let element = lane * BLOCK_ELEMENTS + row;
            let Some(chunk) = bytes.get_mut(element * size..(element + 1) * size) else { break };
            let value = recipe.value(word, first_element + element);
            chunk.copy_from_slice(&dtype.encode(value).to_le_bytes()[..size]);
        }
    }
}

/// The case that large tensors spend their time in: float32, uniform.
#[multiversion(targets(
    "x86_64+avx512f+avx512dq+avx512vl+avx512bw+avx2+fma+bmi2",
    "x86_64+avx2+fma+bmi2",
    "aarch64+neon"
))]
fn fill_uniform_f32(low: f64, width: f64, mut streams: BlockStreams, bytes: &mut [u8]) {
    let mut stripe = [[0f32; LANES]; STRIPE];
    for first_row in (0..BLOCK_ELEMENTS).step_by(STRIPE) {
        for row in &mut stripe {
            let words = streams.next_words();
            for (value, word) in row.iter_mut().zip(words) {
                *value = (low + width * gpuemu_common::rng::unit(word)) as f32;
            }
        }
        for lane in 0..LANES {
            let start = (lane * BLOCK_ELEMENTS + first_row) * 4;
            let Some(part) = bytes.get_mut(start..) else { break };
            for (chunk, row) in part.chunks_exact_mut(4).zip(&stripe) {
                chunk.copy_from_slice(&row[lane].to_le_bytes());
            }
        }
    }
}
