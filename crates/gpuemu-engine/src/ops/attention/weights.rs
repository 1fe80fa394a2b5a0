//! From the scores of one query to its softmax weights, and how far a kernel's may be from them.

use multiversion::multiversion;

use super::tile::LANES;
use crate::ops::exponential::{SMALL, exp, small_expm1};

/// A row of weights that is an ordinary softmax.
#[derive(Debug, Clone, Copy)]
pub(super) struct Weighed {
    pub maximum: f64,
    /// Σ exp(score − maximum).
    pub sum: f64,
    /// Σ p·e.
    pub total_error: f64,
    pub largest_error: f64,
    /// Σ p·(maximum − score).
    pub spread: f64,
    /// The largest error of a score that has weight.
    pub score_error: f64,
}

/// What a score's magnitude and size make of its error, each with a factor, and what is lost besides.
#[derive(Debug, Clone, Copy)]
pub(super) struct ScoreError {
    pub scale: f64,
    pub by_magnitude: f64,
    pub by_score: f64,
    pub constant: f64,
    /// The largest magnitude that does not overflow.
    pub limit: f64,
}

/// Turns dot products into scores and magnitudes into their errors; whether all of them are in range.
#[multiversion(targets("x86_64+avx512f+avx512vl+avx2+fma", "x86_64+avx2+fma", "aarch64+neon"))]
pub(super) fn score(rule: &ScoreError, dots: &mut [f64], magnitudes: &mut [f64]) -> bool {
    let mut ordinary = true;
    for (dot, magnitude) in dots.iter().zip(magnitudes.iter()) {
        ordinary &= (*magnitude <= rule.limit) & dot.is_finite();
    }
    if !ordinary {
        return false;
    }
    for (dot, magnitude) in dots.iter_mut().zip(magnitudes.iter_mut()) {
        *dot *= rule.scale;
        *magnitude = rule.by_magnitude * *magnitude + rule.by_score * dot.abs() + rule.constant;
    }
    true
}

/// The largest score, and whether one is NaN.
#[multiversion(targets("x86_64+avx512f+avx512vl+avx2+fma", "x86_64+avx2+fma", "aarch64+neon"))]
pub(super) fn largest(scores: &[f64]) -> (f64, bool) {
    let (mut lanes, mut poisoned) = ([f64::NEG_INFINITY; LANES], false);
    let (chunks, rest) = scores.as_chunks::<LANES>();
    for chunk in chunks {
        for (lane, score) in lanes.iter_mut().zip(chunk) {
            *lane = if *score > *lane { *score } else { *lane };
            poisoned |= score.is_nan();
        }
    }
    let more = rest.iter().chain(&lanes);
    let maximum = more.fold(f64::NEG_INFINITY, |most, score| if *score > most { *score } else { most });
    (maximum, poisoned || rest.iter().any(|score| score.is_nan()))
}

/// Makes weights p of finite scores (−Inf where nothing is seen), and of the scores' errors p·e, where e is the
/// relative error of each exponential: that of its score, `slope` for each unit below the maximum, and `constant`. The
/// slices are whole panels.
#[multiversion(targets("x86_64+avx512f+avx512vl+avx2+fma", "x86_64+avx2+fma", "aarch64+neon"))]
pub(super) fn weigh(slope: f64, constant: f64, maximum: f64, scores: &mut [f64], errors: &mut [f64]) -> Weighed {
    let (scores, errors) = (scores.as_chunks_mut::<LANES>().0, errors.as_chunks_mut::<LANES>().0);
    let (mut sum, mut largest) = ([0.0f64; LANES], [0.0f64; LANES]);
    let (mut moved, mut spread, mut score_error) = ([0.0f64; LANES], [0.0f64; LANES], [0.0f64; LANES]);
    let mut worst = [0.0f64; LANES];
    for (scores, errors) in scores.iter_mut().zip(errors.iter_mut()) {
        for lane in 0..LANES {
            let below = maximum - scores[lane];
            let weight = exp(-below);
            let kept = weight > 0.0;
            let distance = if kept { below } else { 0.0 };
            let error = if kept { errors[lane] } else { 0.0 };
            let exponent = error + (slope * distance + constant);
            worst[lane] = if exponent > worst[lane] { exponent } else { worst[lane] };
            score_error[lane] = if error > score_error[lane] { error } else { score_error[lane] };
            sum[lane] += weight;
            spread[lane] += weight * distance;
            scores[lane] = weight;
            errors[lane] = exponent;
        }
    }
    let total: f64 = sum.iter().sum();
    let small = worst.iter().all(|exponent| *exponent <= SMALL);
    for (weights, errors) in scores.iter_mut().zip(errors.iter_mut()) {
        weights.iter_mut().for_each(|weight| *weight /= total);
        if !small {
            for (error, weight) in errors.iter_mut().zip(weights.iter()) {
                *error = if *weight > 0.0 { libm::expm1(*error) } else { 0.0 };
            }
        }
        for lane in 0..LANES {
            let error = if small { small_expm1(errors[lane]) } else { errors[lane] };
            let error = if weights[lane] > 0.0 { error } else { 0.0 };
            largest[lane] = if error > largest[lane] { error } else { largest[lane] };
            errors[lane] = weights[lane] * error;
            moved[lane] += errors[lane];
        }
    }
    let most = |lanes: [f64; LANES]| lanes.into_iter().fold(0.0f64, f64::max);
    Weighed {
        maximum,
        sum: total,
        total_error: moved.iter().sum(),
        largest_error: most(largest),
        spread: spread.iter().sum::<f64>() / total,
        score_error: most(score_error),
    }
}
