//! What the machine's memory allows: the limit that streaming work is held against.

use std::hint::black_box;
use std::sync::OnceLock;

use rayon::prelude::*;

use crate::timing::median_seconds;

const BYTES: usize = 1 << 30;
const PART: usize = 1 << 20;

/// Gigabytes a second that all threads together read.
pub fn read() -> f64 {
    static RATE: OnceLock<f64> = OnceLock::new();
    *RATE.get_or_init(|| {
        let data = vec![1u64; BYTES / 8];
        let seconds = median_seconds(5, || {
            let sum: u64 = data
                .par_chunks(PART / 8)
                .map(|part| part.iter().fold(0u64, |sum, word| sum.wrapping_add(*word)))
                .reduce(|| 0, u64::wrapping_add);
            black_box(sum);
        });
        BYTES as f64 / seconds / 1e9
    })
}

/// Gigabytes a second that all threads together write.
pub fn write() -> f64 {
    static RATE: OnceLock<f64> = OnceLock::new();
    *RATE.get_or_init(|| {
        let mut data = vec![1u64; BYTES / 8];
        let mut value = 0u64;
        let seconds = median_seconds(5, || {
            value += 1;
            data.par_chunks_mut(PART / 8).for_each(|part| part.fill(value));
            black_box(&data);
        });
        BYTES as f64 / seconds / 1e9
    })
}
