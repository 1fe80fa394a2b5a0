//! Uniform float32 blocks with AVX-512: eight blocks share a register, and sixteen of their rows are
//! transposed straight out of registers into whole cache lines.
//!
//! The portable path writes a group to the cache and copies it from there eight bytes at a time,
//! which takes as long as computing it. Intrinsics, because the compiler makes gathers or scalar
//! code of a transposition that is written with arrays.

use gpuemu_tensor::rng::BlockStreams;

/// Fills the blocks of a group. False, and nothing written, where the group is not whole, not aligned
/// to float32, or the processor lacks the instructions.
#[cfg(target_arch = "x86_64")]
pub fn fill_uniform_f32(low: f64, width: f64, streams: &BlockStreams, bytes: &mut [u8]) -> bool {
    kernel::fill_uniform_f32(low, width, streams, bytes)
}

/// Fills nothing: there is no such path for this processor.
#[cfg(not(target_arch = "x86_64"))]
pub fn fill_uniform_f32(_low: f64, _width: f64, _streams: &BlockStreams, _bytes: &mut [u8]) -> bool {
    false
}

#[cfg(target_arch = "x86_64")]
#[allow(unsafe_code, reason = "instructions that not every processor has, and stores that pass the cache by")]
mod kernel {
    use std::arch::x86_64::*;

    use gpuemu_tensor::rng::{BLOCK_ELEMENTS, BlockStreams, LANES};

    /// Blocks that share a register, a 64-bit word each.
    const BLOCKS: usize = 8;

    /// Rows of a block that fill a cache line.
    const ROWS: usize = 16;

    type Group = [f32; LANES * BLOCK_ELEMENTS];

    pub fn fill_uniform_f32(low: f64, width: f64, streams: &BlockStreams, bytes: &mut [u8]) -> bool {
        // SAFETY: any bytes are a float32, and any float32 is bytes.
        let (unaligned, elements, _) = unsafe { bytes.align_to_mut::<f32>() };
        let (true, Some(group)) = (unaligned.is_empty(), elements.as_mut_array()) else { return false };
        // Only for these widths does `values` round as it says.
        let width_fits = width > 0.0 && width.is_finite();
        if !(width_fits && is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512vbmi2")) {
            return false;
        }
        // SAFETY: the processor has the features that the function is compiled for.
        unsafe { fill_group(low, width, streams, group) };
        true
    }

    #[target_feature(enable = "avx512f,avx512vbmi2")]
    fn fill_group(low: f64, width: f64, streams: &BlockStreams, group: &mut Group) {
        let (first, second) = streams.states();
        let states = first.as_chunks().0.iter().zip(second.as_chunks().0);
        for ((first, second), blocks) in states.zip(group.as_chunks_mut().0) {
            let streams = EightStreams::new(low, width, first, second);
            fill_blocks(streams, blocks);
        }
        // The streaming stores of `fill_blocks` become visible to other threads in order only
        // after this.
        _mm_sfence();
    }

    /// Fills eight blocks, one cache line of each at a time.
    #[target_feature(enable = "avx512f,avx512vbmi2")]
    fn fill_blocks(mut streams: EightStreams, blocks: &mut [f32; BLOCKS * BLOCK_ELEMENTS]) {
        // Blocks are whole cache lines long, so all eight start at the same place of a line.
        let lead = blocks.as_ptr().addr().wrapping_neg() % 64 / 4;
        let lines = (BLOCK_ELEMENTS - lead) / ROWS;
        streams.fill_part_of_line(0, lead, blocks);
        for line in 0..lines {
            let mut rows = [_mm256_setzero_ps(); ROWS];
            // Some words ahead of their values: one waits less for the other.
            for half in rows.as_chunks_mut::<8>().0 {
                let mut words = [_mm512_setzero_si512(); 8];
                for word in &mut words {
                    *word = streams.next_words();
                }
                for (row, word) in half.iter_mut().zip(words) {
                    *row = streams.values(word);
                }
            }
            let columns = transpose(&rows);
            for (block, column) in columns.into_iter().enumerate() {
                let place = block * BLOCK_ELEMENTS + lead + line * ROWS;
                // SAFETY: the sixteen elements from `place` are inside `blocks`, as `lines` fit
                // behind `lead` in a block, and aligned to 64 bytes, being whole lines behind
                // `lead`. `fill_group` ends with the fence that streaming asks for, and nothing
                // reads the elements before it.
                unsafe { _mm512_stream_ps(blocks.as_mut_ptr().add(place), column) };
            }
        }
        let filled = lead + lines * ROWS;
        streams.fill_part_of_line(filled, BLOCK_ELEMENTS - filled, blocks);
    }

    /// The streams of eight blocks and what their words are made into.
    struct EightStreams {
        first: __m512i,
        second: __m512i,
        low: __m512d,
        width: __m512d,
    }

    impl EightStreams {
        #[target_feature(enable = "avx512f,avx512vbmi2")]
        fn new(low: f64, width: f64, first: &[u64; BLOCKS], second: &[u64; BLOCKS]) -> Self {
            // SAFETY: both are references to the 64 bytes that are read; no alignment is needed.
            let (first, second) =
                unsafe { (_mm512_loadu_si512(first.as_ptr().cast()), _mm512_loadu_si512(second.as_ptr().cast())) };
            Self { first, second, low: _mm512_set1_pd(low), width: _mm512_set1_pd(width) }
        }

        /// The next element of every block.
        #[inline]
        #[target_feature(enable = "avx512f,avx512vbmi2")]
        fn next_row(&mut self) -> __m256 {
            let words = self.next_words();
            self.values(words)
        }

        /// The next word of every block, by the step of `Stream`.
        #[inline]
        #[target_feature(enable = "avx512f,avx512vbmi2")]
        fn next_words(&mut self) -> __m512i {
            /// The truth table of the exclusive or of three bits.
            const XOR: i32 = 0b1001_0110;
            let (first, second) = (self.first, self.second);
            let mixed = _mm512_xor_si512(first, _mm512_slli_epi64::<23>(first));
            let next = _mm512_ternarylogic_epi64::<XOR>(mixed, second, _mm512_srli_epi64::<17>(mixed));
            let next = _mm512_xor_si512(next, _mm512_srli_epi64::<26>(second));
            (self.first, self.second) = (second, next);
            _mm512_add_epi64(next, second)
        }

        /// `low + width * unit(word)` of every word.
        #[inline]
        #[target_feature(enable = "avx512f,avx512vbmi2")]
        fn values(&self, words: __m512i) -> __m256 {
            // A word's upper 52 bits below the exponent of 1.0, shifted in from the other operand:
            // a number in [1, 2).
            let one_and_unit = _mm512_castsi512_pd(_mm512_shrdi_epi64::<12>(words, _mm512_set1_epi64(1023)));
            // width * (1 + unit) - width with one rounding is width * unit with one rounding.
            let scaled = _mm512_fmsub_pd(self.width, one_and_unit, self.width);
            _mm512_cvtpd_ps(_mm512_add_pd(self.low, scaled))
        }

        /// Fills fewer rows than a cache line holds.
        #[target_feature(enable = "avx512f,avx512vbmi2")]
        fn fill_part_of_line(&mut self, start: usize, count: usize, blocks: &mut [f32; BLOCKS * BLOCK_ELEMENTS]) {
            let mut rows = [_mm256_setzero_ps(); ROWS];
            for row in &mut rows[..count] {
                *row = self.next_row();
            }
            let columns = transpose(&rows);
            for (block, column) in columns.into_iter().enumerate() {
                let place = &mut blocks[block * BLOCK_ELEMENTS + start..][..count];
                // SAFETY: the mask admits the first `count` elements only, which is how many
                // `place` has; no alignment is needed.
                unsafe { _mm512_mask_storeu_ps(place.as_mut_ptr(), (1 << count) - 1, column) };
            }
        }
    }

    /// Sixteen rows of eight blocks, as sixteen elements of each block.
    #[inline]
    #[target_feature(enable = "avx512f,avx512vbmi2")]
    fn transpose(rows: &[__m256; ROWS]) -> [__m512; BLOCKS] {
        let upper = transpose_quarters(&rows[..8]);
        let lower = transpose_quarters(&rows[8..]);
        let mut columns = [_mm512_setzero_ps(); BLOCKS];
        for block in 0..4 {
            columns[block] = _mm512_shuffle_f32x4::<0b10_00_10_00>(upper[block], lower[block]);
            columns[block + 4] = _mm512_shuffle_f32x4::<0b11_01_11_01>(upper[block], lower[block]);
        }
        columns
    }

    /// Four rows of a block in each quarter of a register. Of eight rows, the register at place `p`
    /// holds: the upper four rows of block `p`, those of block `p + 4`, the lower four rows of block
    /// `p`, those of block `p + 4`.
    #[inline]
    #[target_feature(enable = "avx512f,avx512vbmi2")]
    fn transpose_quarters(rows: &[__m256]) -> [__m512; 4] {
        let zero = join(rows[0], rows[4]);
        let one = join(rows[1], rows[5]);
        let two = join(rows[2], rows[6]);
        let three = join(rows[3], rows[7]);
        let first_low = _mm512_castps_pd(_mm512_unpacklo_ps(zero, one));
        let last_low = _mm512_castps_pd(_mm512_unpacklo_ps(two, three));
        let first_high = _mm512_castps_pd(_mm512_unpackhi_ps(zero, one));
        let last_high = _mm512_castps_pd(_mm512_unpackhi_ps(two, three));
        [
            _mm512_castpd_ps(_mm512_unpacklo_pd(first_low, last_low)),
            _mm512_castpd_ps(_mm512_unpackhi_pd(first_low, last_low)),
            _mm512_castpd_ps(_mm512_unpacklo_pd(first_high, last_high)),
            _mm512_castpd_ps(_mm512_unpackhi_pd(first_high, last_high)),
        ]
    }

    /// Two half registers as one.
    #[inline]
    #[target_feature(enable = "avx512f,avx512vbmi2")]
    fn join(lower: __m256, upper: __m256) -> __m512 {
        let (lower, upper) = (_mm256_castps_pd(lower), _mm256_castps_pd(upper));
        _mm512_castpd_ps(_mm512_insertf64x4::<1>(_mm512_castpd256_pd512(lower), upper))
    }
}
