//! Filling a tensor from its block streams: over all cores where there are many blocks, and the
//! commonest kind in vector lanes, one block each.

use gpuemu_tensor::rng::{BLOCK_ELEMENTS, BlockStreams, LANES, unit};
use gpuemu_tensor::{DType, Stream};
use multiversion::multiversion;
use rayon::prelude::*;

use super::avx512;
use super::values::Recipe;

/// Elements above which filling is spread over cores.
const PARALLEL_ELEMENTS: usize = 1 << 18;

/// The elements of the tensor called `input` of a case, contiguous, as bytes.
pub fn fill(dtype: DType, recipe: &Recipe, case_seed: u64, input: &str, count: usize) -> Vec<u8> {
    let mut bytes = vec![0u8; count * dtype.size()];
    fill_into(dtype, recipe, case_seed, input, &mut bytes);
    bytes
}

/// Fills bytes that already exist.
pub fn fill_into(dtype: DType, recipe: &Recipe, case_seed: u64, input: &str, bytes: &mut [u8]) {
    let block_bytes = BLOCK_ELEMENTS * dtype.size();
    let parallel = bytes.len() / dtype.size() >= PARALLEL_ELEMENTS;
    if let (DType::F32, Recipe::Uniform { low, width }, true) = (dtype, recipe, parallel) {
        let parts = bytes.par_chunks_mut(LANES * block_bytes).enumerate();
        parts.for_each_init(Vec::new, |group, (index, part)| {
            let streams = BlockStreams::new(case_seed, input, index * LANES, part.len().div_ceil(block_bytes));
            if !avx512::fill_uniform_f32(*low, *width, &streams, part) {
                group.resize(BLOCK_ELEMENTS / 2, [0; LANES]);
                fill_uniform_f32(*low, *width, streams, group);
                turn(group, part);
            }
        });
        return;
    }
    let fill_one = |(block, part): (usize, &mut [u8])| {
        let stream = Stream::new(case_seed, &format!("data/{input}/{block}"));
        fill_block(dtype, recipe, stream, block * BLOCK_ELEMENTS, part);
    };
    if parallel {
        bytes.par_chunks_mut(block_bytes).enumerate().for_each(fill_one);
    } else {
        bytes.chunks_mut(block_bytes).enumerate().for_each(fill_one);
    }
}

fn fill_block(dtype: DType, recipe: &Recipe, mut stream: Stream, first_element: usize, bytes: &mut [u8]) {
    let size = dtype.size();
    for (row, chunk) in bytes.chunks_exact_mut(size).enumerate() {
        let value = recipe.value(stream.next_word(), first_element + row);
        chunk.copy_from_slice(&dtype.encode(value).to_le_bytes()[..size]);
    }
}

/// Pairs of rows of all lanes of some blocks: small enough for the second-level cache, so that only
/// finished blocks reach memory.
type Group = [[u64; LANES]];

/// The case that large tensors spend their time in: float32, uniform, one block a lane. Where
/// `avx512` has no faster way.
#[multiversion(targets(
    "x86_64+avx512f+avx512dq+avx512vl+avx512bw+avx2+fma+bmi2",
    "x86_64+avx2+fma+bmi2",
    "aarch64+neon"
))]
fn fill_uniform_f32(low: f64, width: f64, mut streams: BlockStreams, group: &mut Group) {
    let (mut first, mut second) = ([0; LANES], [0; LANES]);
    for pair in group {
        streams.next_words(&mut first);
        streams.next_words(&mut second);
        // Two rows share a word, so that turning moves eight bytes at a time.
        for ((packed, first), second) in pair.iter_mut().zip(&first).zip(&second) {
            let low_half = ((low + width * unit(*first)) as f32).to_bits();
            let high_half = ((low + width * unit(*second)) as f32).to_bits();
            *packed = u64::from(low_half) | (u64::from(high_half) << 32);
        }
    }
}

/// Copies a group to the blocks that its lanes are, four blocks at a time: as many streams as the
/// prefetcher follows. Compiled for the plain target on purpose: with AVX2 at hand the compiler
/// makes gathers of the strided loads, which cost more.
#[inline(never)]
fn turn(group: &Group, bytes: &mut [u8]) {
    let mut blocks = bytes.chunks_mut(4 * BLOCK_ELEMENTS);
    for lane in (0..LANES).step_by(4) {
        let mut together: [&mut [u8]; 4] = std::array::from_fn(|_| blocks.next().unwrap_or_default());
        if together[3].len() == 4 * BLOCK_ELEMENTS {
            let [one, two, three, four] = together.map(|block| block.as_chunks_mut::<8>().0);
            for ((((pair, one), two), three), four) in group.iter().zip(one).zip(two).zip(three).zip(four) {
                *one = pair[lane].to_le_bytes();
                *two = pair[lane + 1].to_le_bytes();
                *three = pair[lane + 2].to_le_bytes();
                *four = pair[lane + 3].to_le_bytes();
            }
            continue;
        }
        // The end of the tensor.
        for (place, block) in together.iter_mut().enumerate() {
            for (chunk, pair) in block.chunks_mut(8).zip(group) {
                chunk.copy_from_slice(&pair[lane + place].to_le_bytes()[..chunk.len()]);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_tensors_equal_their_blocks() {
        for (low, width) in [(0.0, 1.0), (-10.0, 20.0), (99.875, 0.25)] {
            let recipe = Recipe::Uniform { low, width };
            for extra in [0, 1, 1023, 65535] {
                let count = PARALLEL_ELEMENTS + extra;
                let mut expected = vec![0; 4 * count];
                for (block, part) in expected.chunks_mut(4 * BLOCK_ELEMENTS).enumerate() {
                    let stream = Stream::new(7, &format!("data/input/{block}"));
                    fill_block(DType::F32, &recipe, stream, block * BLOCK_ELEMENTS, part);
                }
                // From every place of a cache line, and from one where no float32 may lie.
                for offset in (0..64).step_by(4).chain([1]) {
                    let mut bytes = vec![0; offset + 4 * count + 1];
                    fill_into(DType::F32, &recipe, 7, "input", &mut bytes[offset..offset + 4 * count]);
                    assert!(bytes[..offset].iter().all(|byte| *byte == 0), "before {offset}");
                    assert!(bytes[offset..offset + 4 * count] == expected, "{low} {width} {extra} at {offset}");
                    assert_eq!(bytes[offset + 4 * count], 0, "after {offset}");
                }
            }
        }
    }
}
