//! Medians of repeated runs.

use std::time::Instant;

/// The median of the seconds that `work` takes, after one run to warm up.
pub fn median_seconds(repeats: usize, mut work: impl FnMut()) -> f64 {
    work();
    let mut seconds: Vec<f64> = (0..repeats)
        .map(|_| {
            let start = Instant::now();
            work();
            start.elapsed().as_secs_f64()
        })
        .collect();
    seconds.sort_by(f64::total_cmp);
    seconds[seconds.len() / 2]
}
