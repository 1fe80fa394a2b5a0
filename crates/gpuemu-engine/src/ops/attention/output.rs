//! Outputs of attention: weights times values, log-sum-exps, and δ of both.

use std::ops::Range;

use rayon::prelude::*;

use super::head::{Head, Sight};
use super::row::{Block, Outcome, Setting};
use super::tile::{LANES, ROWS, products, spreads};
use super::weights::Weighed;
use crate::ops::expectation::overflows;
use crate::ops::{ExcuseKind, Expectation, OpError};

/// What a mask that is added makes of a score of infinity.
const MASKED_SCORE: ExcuseKind = ExcuseKind::Overflow { nan: true, infinite: false, value: None };

/// Multiply-adds from which on work is spread over cores.
pub(super) const WORTH_SPREADING: usize = 1 << 18;
/// Queries that one core takes at a time.
const QUERIES: usize = 64;

/// Outputs and log-sum-exps, query after query.
#[derive(Default)]
pub(super) struct Attended {
    pub out: Expectation,
    /// Log-sum-exps.
    pub lse: Expectation,
}

impl FromIterator<Attended> for Attended {
    fn from_iter<T: IntoIterator<Item = Attended>>(parts: T) -> Self {
        let mut all = Self::default();
        for part in parts {
            all.out.append(part.out);
            all.lse.append(part.lse);
        }
        all
    }
}

/// The parts of `count` heads in their order, computed on all cores where `work` multiply-adds are worth it.
pub(super) fn each_head<T: Send>(
    count: usize,
    work: usize,
    head: impl Fn(usize) -> Result<T, OpError> + Send + Sync,
) -> Result<Vec<T>, OpError> {
    if work < WORTH_SPREADING {
        return (0..count).map(head).collect();
    }
    (0..count).into_par_iter().map(head).collect()
}

/// Sums over the keys of a few rows, a row each of as many elements as the panels of values have.
struct Sums {
    output: Vec<f64>,
    /// Σ p|v|.
    magnitude: Vec<f64>,
    /// Σ p·e·|v − y|.
    spread: Vec<f64>,
}

impl Sums {
    fn new(head: &Head<'_>) -> Self {
        let zeros = || vec![0.0; ROWS * head.value_panels.stride()];
        Self { output: zeros(), magnitude: zeros(), spread: zeros() }
    }
}

/// The sums over keys that an element's bound is made of.
#[derive(Debug, Clone, Copy, Default)]
struct Moved {
    y: f64,
    /// Σ p|v|.
    magnitude: f64,
    /// Σ p·e·|v − y|.
    spread: f64,
    /// Σ|v|.
    all: f64,
}

impl Setting {
    /// Outputs and log-sum-exps of queries, which lie one after the other.
    pub fn attend<'a>(&self, head: &Head<'_>, q: &[f64], sight: impl Fn(usize) -> Sight<'a> + Send + Sync) -> Attended {
        if q.len() * head.keys < WORTH_SPREADING {
            return self.attend_some(head, q, 0, &sight);
        }
        let part = |(index, q)| self.attend_some(head, q, index * QUERIES, &sight);
        let parts: Vec<Attended> = q.par_chunks(QUERIES * head.width.max(1)).enumerate().map(part).collect();
        parts.into_iter().collect()
    }

    fn attend_some<'a>(
        &self,
        head: &Head<'_>,
        q: &[f64],
        first: usize,
        sight: &impl Fn(usize) -> Sight<'a>,
    ) -> Attended {
        let width = head.width.max(1);
        let mut attended =
            Attended { out: Expectation::with_capacity(q.len()), lse: Expectation::with_capacity(q.len() / width) };
        let (mut block, mut sums) = (Block::new(head), Sums::new(head));
        for (index, q) in q.chunks(ROWS * width).enumerate() {
            let sights: Vec<Sight<'_>> = (0..q.len() / width).map(|row| sight(first + index * ROWS + row)).collect();
            let outcomes = self.weigh(head, q, &sights, &mut block);
            Self::values(head, &block, &mut sums);
            for (row, (outcome, sight)) in outcomes.iter().zip(&sights).enumerate() {
                let q = &q[row * head.width..][..head.width];
                self.push(head, q, sight, outcome, (&block, &sums, row), &mut attended);
            }
        }
        attended
    }

    fn values(head: &Head<'_>, block: &Block, sums: &mut Sums) {
        let keys = block.columns.start..block.columns.end.min(head.keys);
        let stride = block.key_stride;
        let ranges: [Range<usize>; ROWS] = std::array::from_fn(|row| row * stride..(row + 1) * stride);
        let weights = ranges.clone().map(|range| &block.weights[range]);
        let panels = 0..head.width.div_ceil(LANES);
        products(weights, &head.value_panels, keys.clone(), panels, &mut sums.output, &mut sums.magnitude);
        let errors = ranges.map(|range| &block.errors[range]);
        spreads(errors, &head.value_panels, keys, &sums.output, &mut sums.spread);
    }

    #[allow(clippy::too_many_arguments, reason = "one row: what it is of, what it came to, and where it goes")]
    fn push(
        &self,
        head: &Head<'_>,
        q: &[f64],
        sight: &Sight<'_>,
        outcome: &Outcome,
        (block, sums, row): (&Block, &Sums, usize),
        attended: &mut Attended,
    ) {
        let (width, Attended { out, lse }) = (head.width, attended);
        let mut all = |value: f64| (0..width).for_each(|_| out.push(value, 0.0));
        let weighed = match outcome {
            Outcome::Blind => {
                all(if self.zero_rows { 0.0 } else { f64::NAN });
                return lse.push(if self.positive_lse { f64::INFINITY } else { f64::NEG_INFINITY }, 0.0);
            }
            Outcome::Overflow => {
                (0..width).for_each(|_| out.push_undetermined(f64::NAN, "unscaled |q||k|"));
                return lse.push_undetermined(f64::NAN, "unscaled |q||k|");
            }
            Outcome::Lowest if self.zero_rows => {
                // A row of nothing but -Inf: zero as where nothing is seen, or NaN.
                (0..width).for_each(|_| out.push_overflow(0.0, 0.0, MASKED_SCORE, "a row of -Inf"));
                return lse.push_overflow(f64::NEG_INFINITY, 0.0, MASKED_SCORE, "a row of -Inf");
            }
            Outcome::Poisoned => {
                all(f64::NAN);
                return lse.push(f64::NAN, 0.0);
            }
            // +Inf − Inf, or nothing but −Inf: NaN. The log-sum-exp of those is the infinity itself or NaN.
            Outcome::Lowest => {
                all(f64::NAN);
                return lse.push_overflow(f64::NEG_INFINITY, 0.0, MASKED_SCORE, "a score of infinity");
            }
            Outcome::Highest => {
                all(f64::NAN);
                return lse.push_overflow(f64::INFINITY, 0.0, MASKED_SCORE, "a score of infinity");
            }
            Outcome::Ordinary(weighed) => weighed,
        };
        let masked = head.masked_overflow(q, sight, self.units.max);
        self.push_lse(head, weighed, masked, lse);
        let direct = sight.range.start > 0 || sight.mask.is_some();
        for column in 0..width {
            if head.special[column] {
                self.push_special(head, sight, weighed, masked, &block.weights[row * block.key_stride..], column, out);
                continue;
            }
            let place = row * head.value_panels.stride() + column;
            let sum = if direct {
                let seen = sight.range.clone().filter(|key| sight.sees(*key));
                seen.map(|key| head.v[key * width + column].abs()).sum()
            } else {
                head.prefix[sight.range.end * width + column]
            };
            let moved =
                Moved { y: sums.output[place], magnitude: sums.magnitude[place], spread: sums.spread[place], all: sum };
            self.push_element(head, sight, weighed, masked, &moved, column, out);
        }
    }

    fn push_lse(&self, head: &Head<'_>, weighed: &Weighed, masked: bool, lse: &mut Expectation) {
        let units = &self.units;
        let (maximum, log) = (weighed.maximum, libm::log(weighed.sum));
        let folded = if self.folded { maximum.abs() } else { 0.0 };
        let mut condition =
            head.sum + units.argument * (weighed.spread + folded) + units.exp + 3.0 * log + 2.0 * maximum.abs();
        if head.merging.splits > 1 {
            condition += head.merging.splits as f64
                + (units.argument + 3.0) * weighed.spread
                + units.exp
                + 3.0 * (libm::log(head.keys as f64) + maximum.abs());
        }
        let error = units.u * condition + weighed.score_error + head.keys as f64 * units.tiny / weighed.sum;
        if masked {
            lse.push_overflow(maximum + log, error, MASKED_SCORE, "a masked score");
        } else {
            lse.push(maximum + log, error);
        }
    }

    /// A column whose values are not all finite.
    #[allow(clippy::too_many_arguments, reason = "one element: what it is of, what it came to, and where it goes")]
    fn push_special(
        &self,
        head: &Head<'_>,
        sight: &Sight<'_>,
        weighed: &Weighed,
        masked: bool,
        weights: &[f64],
        column: usize,
        out: &mut Expectation,
    ) {
        let (mut y, mut hidden) = (0.0, false);
        for (key, weight) in weights[..head.keys].iter().enumerate() {
            let (value, seen) = (head.v[key * head.width + column], sight.sees(key));
            // A weight that underflows to 0 turns an infinity into NaN, sooner in the kernel than here.
            let vanishing = !seen || weight * weighed.sum < self.units.mid_eta.max(1e-30);
            hidden |= vanishing && !value.is_finite();
            y += if seen { weight * value } else { 0.0 };
        }
        if hidden {
            out.push_undetermined(y, "weight 0 times a value that is not finite");
        } else if masked {
            out.push_overflow(y, 0.0, MASKED_SCORE, "a masked score");
        } else {
            out.push(y, 0.0);
        }
    }

    #[allow(clippy::too_many_arguments, reason = "one element: what it is of, what it came to, and where it goes")]
    fn push_element(
        &self,
        head: &Head<'_>,
        sight: &Sight<'_>,
        weighed: &Weighed,
        masked: bool,
        moved: &Moved,
        column: usize,
        out: &mut Expectation,
    ) {
        let units = self.units;
        let &Moved { y, magnitude, all, .. } = moved;
        let mut shift = moved.spread / (1.0 - weighed.total_error);
        // Below a half no error moves a row further than the hull of its values; above, the hull is the bound: a new
        // row of weights is a convex mix too.
        if weighed.largest_error > 0.5 {
            let seen = sight.range.clone().filter(|key| sight.sees(*key));
            let distances = seen.map(|key| (head.v[key * head.width + column] - y).abs());
            let hull = distances.fold(0.0f64, f64::max);
            shift = if weighed.total_error >= 0.5 { hull } else { shift.min(hull) };
        }
        let merged = if head.merging.splits > 1 { head.merging.splits as f64 + units.division + 3.0 } else { 0.0 };
        let delta = shift
            + units.u * (head.sum + units.division + 1.0 + merged) * (magnitude + y.abs())
            + units.mid * magnitude
            + units.mid_eta * all / weighed.sum.max(1.0)
            + units.tiny * (all / weighed.sum + y.abs() * head.keys as f64 / weighed.sum + 1.0)
            + units.input * (2.0 + units.input) * magnitude
            // Products of weights and values that are subnormal, each of them.
            + (head.keys as f64 * units.flush).min(magnitude);
        if masked {
            let kind = ExcuseKind::Overflow { nan: true, infinite: overflows(all, units.max), value: None };
            out.push_overflow(y, delta, kind, "a masked score");
        } else if overflows(all, units.max) {
            let kind = ExcuseKind::Overflow { nan: true, infinite: true, value: None };
            out.push_overflow(y, delta, kind, "sum of |v|");
        } else {
            out.push(y, delta);
        }
    }
}
