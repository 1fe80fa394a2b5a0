//! Seeds and streams: one seed gives the same bytes in Rust, in Python and on every machine.
//!
//! Seeds are derived with Blake2b, streams are xorshift128+ (shifts 23, 17, 26). Nothing here or
//! downstream of it calls libm, whose last bits differ between machines.

use blake2b_simd::Params;
use blake2b_simd::many::{HashManyJob, hash_many};

/// Elements of a tensor that share one stream.
pub const BLOCK_ELEMENTS: usize = 1024;

/// Streams advanced together, one per block. Far more than a vector register holds: with as many
/// lanes as fit one, the compiler unrolls the lane loop and vectorises the remains badly.
pub const LANES: usize = 64;

/// The seed of case `index` of a run.
pub fn case_seed(base_seed: u64, index: u64) -> u64 {
    derive_seed(&[&base_seed.to_le_bytes(), &index.to_le_bytes()])
}

/// The seed of the `step`-th extra case that a case escalates to.
pub fn escalation_seed(case_seed: u64, step: u64) -> u64 {
    derive_seed(&[&case_seed.to_le_bytes(), b"escalate", &step.to_le_bytes()])
}

fn derive_seed(parts: &[&[u8]]) -> u64 {
    little_endian(blake2b(8).hash(&parts.concat()).as_bytes())
}

/// Blake2b with a digest of so many bytes.
pub fn blake2b(length: usize) -> Params {
    let mut parameters = Params::new();
    parameters.hash_length(length);
    parameters
}

fn little_endian(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |word, byte| (word << 8) | u64::from(*byte))
}

/// A xorshift128+ stream of 64-bit words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stream {
    first: u64,
    second: u64,
}

impl Stream {
    /// The stream of a case for one domain, such as `shape` or `data/input/0`.
    pub fn new(case_seed: u64, domain: &str) -> Self {
        Self::from_digest(blake2b(16).hash(&stream_name(case_seed, domain)).as_bytes())
    }

    fn from_digest(digest: &[u8]) -> Self {
        let (low, high) = digest.split_at(8);
        let (first, second) = (little_endian(low), little_endian(high));
        if first == 0 && second == 0 {
            // The all-zero state would stay zero for ever.
            return Self { first: 1, second: 0 };
        }
        Self { first, second }
    }

    #[inline]
    pub fn next_word(&mut self) -> u64 {
        let (word, first, second) = step(self.first, self.second);
        (self.first, self.second) = (first, second);
        word
    }

    /// A number in `0..bound`; 0 when `bound` is 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.next_word()) * u128::from(bound)) >> 64) as u64
    }

    /// One of some choices. An empty list gives `None`.
    pub fn pick<'a, T>(&mut self, choices: &'a [T]) -> Option<&'a T> {
        let index = self.below(choices.len() as u64) as usize;
        choices.get(index)
    }

    /// An index into `weights`, drawn in proportion to them.
    pub fn weighted(&mut self, weights: &[u64]) -> usize {
        let mut remaining = self.below(weights.iter().sum());
        for (index, weight) in weights.iter().enumerate() {
            if remaining < *weight {
                return index;
            }
            remaining -= weight;
        }
        0
    }

    /// True with probability `numerator / denominator`.
    pub fn chance(&mut self, numerator: u64, denominator: u64) -> bool {
        self.below(denominator) < numerator
    }
}

/// What a stream's state is the digest of.
fn stream_name(case_seed: u64, domain: &str) -> Vec<u8> {
    let mut name = case_seed.to_le_bytes().to_vec();
    name.extend_from_slice(domain.as_bytes());
    name
}

/// Appends a number in decimal digits.
fn push_decimal(text: &mut Vec<u8>, number: usize) {
    let mut digits = [0; 20];
    let (mut start, mut rest) = (digits.len(), number);
    loop {
        start -= 1;
        digits[start] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    text.extend_from_slice(&digits[start..]);
}

/// One step: the word, and the state after it.
#[inline(always)]
fn step(first: u64, second: u64) -> (u64, u64, u64) {
    let mut mixed = first;
    mixed ^= mixed << 23;
    let next = mixed ^ second ^ (mixed >> 17) ^ (second >> 26);
    (next.wrapping_add(second), second, next)
}

/// The streams of `LANES` consecutive blocks of one tensor, advanced in step.
#[derive(Debug, Clone)]
pub struct BlockStreams {
    first: [u64; LANES],
    second: [u64; LANES],
}

impl BlockStreams {
    /// The streams of blocks `first_block..first_block + LANES` of the tensor called `input`.
    pub fn new(case_seed: u64, input: &str, first_block: usize, blocks: usize) -> Self {
        let mut streams = Self { first: [1; LANES], second: [0; LANES] };
        let blocks = first_block..first_block + blocks.min(LANES);
        // One buffer for all names: large tensors have so many blocks that a text for each shows.
        let prefix = stream_name(case_seed, &format!("data/{input}/"));
        let mut names = Vec::with_capacity(LANES * (prefix.len() + 20));
        let ends: Vec<usize> = blocks
            .map(|block| {
                names.extend_from_slice(&prefix);
                push_decimal(&mut names, block);
                names.len()
            })
            .collect();
        let parameters = blake2b(16);
        let mut start = 0;
        let mut jobs: Vec<HashManyJob<'_>> = ends
            .iter()
            .map(|end| HashManyJob::new(&parameters, &names[std::mem::replace(&mut start, *end)..*end]))
            .collect();
        hash_many(&mut jobs);
        for (lane, job) in jobs.iter().enumerate() {
            let stream = Stream::from_digest(job.to_hash().as_bytes());
            streams.first[lane] = stream.first;
            streams.second[lane] = stream.second;
        }
        streams
    }

    /// The two halves of every lane's state.
    pub fn states(&self) -> (&[u64; LANES], &[u64; LANES]) {
        (&self.first, &self.second)
    }

    /// The next word of every lane.
    #[inline(always)]
    pub fn next_words(&mut self, words: &mut [u64; LANES]) {
        for ((word, first), second) in words.iter_mut().zip(&mut self.first).zip(&mut self.second) {
            (*word, *first, *second) = step(*first, *second);
        }
    }
}

/// A number in [0, 1) from the upper 52 bits of a word, exactly.
#[inline(always)]
pub fn unit(word: u64) -> f64 {
    f64::from_bits((word >> 12) | (1023 << 52)) - 1.0
}

/// A bell-shaped number of mean 0 and variance 1: the centred sum of the word's four 16-bit lanes.
#[inline(always)]
pub fn bell(word: u64) -> f64 {
    // The standard deviation of the sum is sqrt(4 * (65536^2 - 1) / 12).
    const INVERSE_DEVIATION: f64 = 2.642_899_038_744_166e-5;
    let sum = (word & 0xffff) + ((word >> 16) & 0xffff) + ((word >> 32) & 0xffff) + (word >> 48);
    (sum as i32 - 131_070) as f64 * INVERSE_DEVIATION
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lanes_equal_single_streams() {
        let mut together = BlockStreams::new(7, "input", 3, LANES);
        let mut alone: Vec<Stream> =
            (0..LANES).map(|lane| Stream::new(7, &format!("data/input/{}", 3 + lane))).collect();
        let mut words = [0; LANES];
        for _ in 0..100 {
            together.next_words(&mut words);
            for (lane, stream) in alone.iter_mut().enumerate() {
                assert_eq!(words[lane], stream.next_word());
            }
        }
    }

    #[test]
    fn draws_stay_in_range() {
        let mut stream = Stream::new(1, "shape");
        assert_eq!(stream.below(0), 0);
        assert_eq!(stream.pick::<u8>(&[]), None);
        for _ in 0..10_000 {
            assert!(stream.below(7) < 7);
            assert!(stream.weighted(&[0, 3, 0, 1]) % 2 == 1);
            let word = stream.next_word();
            assert!((0.0..1.0).contains(&unit(word)));
            assert!(bell(word).abs() < 3.47);
        }
    }

    #[test]
    fn the_bell_has_unit_variance() {
        let mut stream = Stream::new(2, "values");
        let count = 200_000;
        let sum: f64 = (0..count).map(|_| bell(stream.next_word()).powi(2)).sum();
        assert!((sum / f64::from(count) - 1.0).abs() < 0.01, "{}", sum / f64::from(count));
    }
}
