//! Rows of attention: from queries and keys to weights, and how far a kernel's may be from them.
//!
//! Queries are taken a few at a time, so that what they need stays in cache.

use std::ops::Range;

use super::head::{Head, Sight, subnormal};
use super::tile::{LANES, ROWS, panels_of, products, rows_of};
use super::weights::{ScoreError, Weighed, largest, score, weigh};
use crate::ops::elementwise::tanh::tanh_condition;
use crate::ops::expectation::overflows;
use crate::ops::{Call, Expectation, OpError};
use crate::schema::Units;

/// How scores are made of dot products, and what becomes of a row that sees nothing.
pub(super) struct Setting {
    /// The constants of the call.
    pub units: Units,
    /// Whether exp2(x·c − m·c) takes the place of exp2((x − m)·c).
    pub folded: bool,
    /// The factor on dot products.
    pub scale: f64,
    /// The bound of scores by a tanh; 0 for none.
    pub softcap: f64,
    /// Whether a row that sees nothing is 0 rather than NaN.
    pub zero_rows: bool,
    /// Whether the log-sum-exp of a row that sees nothing is +Inf rather than −Inf.
    pub positive_lse: bool,
    /// F(D).
    pub dot: f64,
}

/// What the scores of a query amount to.
#[derive(Debug, Clone, Copy)]
pub(super) enum Outcome {
    /// No key is seen.
    Blind,
    /// A dot product that is seen may overflow.
    Overflow,
    /// Every score is −Inf.
    Lowest,
    /// A score is NaN.
    Poisoned,
    /// A score is +Inf.
    Highest,
    Ordinary(Weighed),
}

/// Room for a few rows.
pub(super) struct Block {
    /// Weights p, a row each of `key_stride`.
    pub weights: Vec<f64>,
    /// p·e.
    pub errors: Vec<f64>,
    /// Elements from row to row of weights and errors.
    pub key_stride: usize,
    lost: [Vec<f64>; 2],
    blank: Vec<f64>,
    /// The keys, in whole panels, outside of which no row of the block sees anything.
    pub columns: Range<usize>,
}

impl Block {
    /// Room for rows of a head.
    pub fn new(head: &Head<'_>) -> Self {
        let key_stride = head.keys.next_multiple_of(LANES);
        let zeros = |stride: usize| vec![0.0; ROWS * stride];
        let lost = if head.subnormal_panels.is_some() { key_stride } else { 0 };
        Self {
            weights: zeros(key_stride),
            errors: zeros(key_stride),
            key_stride,
            lost: [zeros(lost), zeros(lost)],
            blank: vec![0.0; head.width],
            columns: 0..0,
        }
    }

    /// The weights of a row, over `columns`.
    pub fn row(&self, row: usize) -> Range<usize> {
        row * self.key_stride + self.columns.start..row * self.key_stride + self.columns.end
    }
}

impl Setting {
    /// What a call's parameters say; those that the op does not have are taken as absent.
    pub fn of(call: &Call<'_>, width: usize) -> Result<Self, OpError> {
        let scale = call.float("scale")?;
        Ok(Self {
            units: call.units,
            folded: call.precision.folded,
            scale: if scale == 0.0 { 1.0 / (width as f64).sqrt() } else { scale },
            softcap: call.float("softcap").unwrap_or(0.0),
            zero_rows: call.flag("masked_rows_zero"),
            positive_lse: false,
            dot: call.summation(width.max(1))?,
        })
    }

    /// Fills a block with the weights of at most [`ROWS`] queries and their errors.
    pub fn weigh(&self, head: &Head<'_>, q: &[f64], sights: &[Sight<'_>], block: &mut Block) -> Vec<Outcome> {
        let units = self.units;
        let first = sights.iter().map(|sight| sight.range.start.min(head.keys)).min().unwrap_or(0);
        let end = sights.iter().map(|sight| sight.range.end.min(head.keys)).max().unwrap_or(0).max(first);
        let panels = panels_of(&(first..end));
        block.columns = panels.start * LANES..panels.end * LANES;
        let flushed = head.subnormal_panels.as_ref().map(|panels| (panels, subnormal(q, units.flush)));
        {
            let blank = &block.blank[..];
            let rows = rows_of(q, head.width, blank);
            products(rows, &head.key_panels, 0..head.width, panels.clone(), &mut block.weights, &mut block.errors);
            if let Some((subnormal_keys, subnormal_rows)) = &flushed {
                let [from_keys, from_rows] = &mut block.lost;
                let mut unused = vec![0.0; from_keys.len()];
                products(rows, subnormal_keys, 0..head.width, panels.clone(), &mut unused, from_keys);
                let rows = rows_of(subnormal_rows, head.width, blank);
                products(rows, &head.key_panels, 0..head.width, panels, &mut unused, from_rows);
            }
        }
        let rule = self.rule(head.width);
        let mut outcomes = Vec::with_capacity(ROWS);
        for row in 0..ROWS {
            let start = row * block.key_stride;
            let Some(sight) = sights.get(row) else {
                block.weights[start..start + block.key_stride].fill(0.0);
                block.errors[start..start + block.key_stride].fill(0.0);
                continue;
            };
            self.score(head, sight, &rule, block, row);
            let place = block.row(row);
            let outcome =
                self.outcome(head, sight, &mut block.weights[place.clone()], &mut block.errors[place.clone()]);
            if !matches!(outcome, Outcome::Ordinary(_)) {
                block.weights[place.clone()].fill(0.0);
                block.errors[place].fill(0.0);
            }
            outcomes.push(outcome);
        }
        outcomes
    }

    fn rule(&self, width: usize) -> ScoreError {
        let units = self.units;
        ScoreError {
            scale: self.scale,
            by_magnitude: self.scale.abs() * (units.u * self.dot + units.mid + units.input * (2.0 + units.input)),
            by_score: 3.0 * units.u,
            constant: self.scale.abs() * width as f64 * (units.eta + units.flush) + units.eta,
            limit: Expectation::OVERFLOW_SHARE * units.max,
        }
    }

    /// How far weights may move where scores are too uncertain for a relative error: no further than the others leave
    /// room for, and nothing reaches a key that stays far below the largest. For scores that are not capped.
    pub fn loose(&self, head: &Head<'_>, q: &[f64], sight: &Sight<'_>, weights: &[f64]) -> Vec<f64> {
        let (units, rule) = (self.units, self.rule(head.width));
        let scored = |key: usize| {
            let pairs = || q.iter().zip(&head.k[key * head.width..][..head.width]);
            let dot: f64 = pairs().map(|(x, y)| x * y).sum();
            let magnitude: f64 = pairs().map(|(x, y)| (x * y).abs()).sum();
            let score = dot * self.scale;
            (score, rule.by_magnitude * magnitude + rule.by_score * score.abs() + rule.constant)
        };
        let scores: Vec<(f64, f64)> = sight.range.clone().map(scored).collect();
        let top =
            scores.iter().fold((f64::NEG_INFINITY, 0.0), |most, score| if score.0 > most.0 { *score } else { most });
        let folded = if self.folded { top.0.abs() } else { 0.0 };
        let reached = scores.iter().zip(weights).map(|((score, error), weight)| {
            let below = top.0 - score;
            let own = units.u * (2.0 * units.argument * (below + folded) + 2.0 * units.exp + 3.0 * top.0.abs());
            libm::exp((error + top.1 + own - below).min(0.0)).max(*weight)
        });
        let reached: Vec<f64> = reached.collect();
        let total: f64 = reached.iter().sum();
        let log = -libm::log(weights.iter().fold(0.0f64, |most, weight| most.max(*weight)));
        let rounded = libm::expm1(log_error(&units, top.0, log));
        let roundings = units.u * (head.sum + units.exp + units.division + 2.0);
        let moved = reached.iter().zip(weights).map(|(reach, weight)| {
            let by_log = (weight * rounded).min(weight.max(1.0 - weight));
            reach.min(total - reach).max(0.0) + by_log + weight * roundings + units.tiny
        });
        moved.collect()
    }

    /// Makes scores and errors of a row's dot products and magnitudes; what is not seen becomes −Inf.
    fn score(&self, head: &Head<'_>, sight: &Sight<'_>, rule: &ScoreError, block: &mut Block, row: usize) {
        let units = self.units;
        let start = row * block.key_stride;
        let range =
            sight.range.start.min(head.keys)..sight.range.end.min(head.keys).max(sight.range.start.min(head.keys));
        let (scores, errors) = (&mut block.weights[start..], &mut block.errors[start..]);
        if !score(rule, &mut scores[range.clone()], &mut errors[range.clone()]) {
            for key in range.clone() {
                let (value, magnitude) = (scores[key] * self.scale, errors[key]);
                scores[key] = value;
                errors[key] = if overflows(magnitude, units.max) && (value.is_finite() || units.reference > 0.0) {
                    // Marks the row: an infinite error is an overflow by name.
                    f64::INFINITY
                } else if value.is_finite() {
                    rule.by_magnitude * magnitude + rule.by_score * value.abs() + rule.constant
                } else {
                    // An infinite or NaN score is what it is: the class rules decide about its row.
                    0.0
                };
            }
        }
        if head.subnormal_panels.is_some() {
            for key in range.clone().filter(|key| scores[*key].is_finite()) {
                errors[key] += self.scale.abs() * (block.lost[0][start + key] + block.lost[1][start + key]);
            }
        }
        if self.softcap > 0.0 {
            for key in range.clone() {
                if !errors[key].is_finite() || scores[key].is_nan() {
                    continue;
                }
                let (t, score) = (libm::tanh(scores[key] / self.softcap), scores[key]);
                // From one end of where the score may be to the other: a slope at its middle says nothing where large
                // terms cancel in it.
                let reach = errors[key] + 2.0 * units.u * score.abs();
                let end = |moved: f64| (libm::tanh((score + moved) / self.softcap) - t).abs();
                let moved = if score.is_finite() { self.softcap * end(reach).max(end(-reach)) } else { 0.0 };
                let condition = tanh_condition(scores[key] / self.softcap, t, &units) + 2.0;
                errors[key] = moved + self.softcap * (units.u * condition + units.tiny);
                scores[key] = self.softcap * t;
            }
        }
        if let Some(bias) = sight.bias {
            for key in range.clone() {
                let moved = scores[key] + bias[key];
                let given = scores[key].is_finite() && bias[key].is_finite();
                errors[key] = if errors[key] == f64::INFINITY || given && overflows(moved.abs(), units.max) {
                    f64::INFINITY
                } else if moved.is_finite() {
                    errors[key] + units.u * (2.0 * bias[key].abs() + moved.abs()) + units.eta
                } else {
                    0.0
                };
                scores[key] = moved;
            }
        }
        let hidden = |key: &usize| !sight.sees(*key);
        let outside = (block.columns.start..range.start).chain(range.end..block.columns.end);
        for key in outside.chain(range.clone().filter(|key| sight.mask.is_some() && hidden(key))) {
            scores[key] = f64::NEG_INFINITY;
            errors[key] = 0.0;
        }
    }

    fn outcome(&self, head: &Head<'_>, sight: &Sight<'_>, scores: &mut [f64], errors: &mut [f64]) -> Outcome {
        if sight.range.is_empty() || sight.mask.is_some() && !sight.range.clone().any(|key| sight.sees(key)) {
            return Outcome::Blind;
        }
        if errors.contains(&f64::INFINITY) {
            return Outcome::Overflow;
        }
        let (maximum, poisoned) = largest(scores);
        if poisoned {
            return Outcome::Poisoned;
        }
        if maximum == f64::NEG_INFINITY {
            return Outcome::Lowest;
        }
        if maximum == f64::INFINITY {
            return Outcome::Highest;
        }
        let units = &self.units;
        let folded = if self.folded { maximum.abs() } else { 0.0 };
        let (mut slope, mut constant) = (units.argument, units.argument * folded + units.exp);
        if head.merging.splits > 1 {
            // The log-sum-exp of a split is rounded, and exponentiated again when splits are merged.
            slope += units.argument + 3.0;
            constant += 3.0 * (maximum.abs() + libm::log(head.keys as f64)) + units.exp + units.division;
        }
        Outcome::Ordinary(weigh(units.u * slope, units.u * constant, maximum, scores, errors))
    }
}

/// The error of a log-sum-exp when it is put together: rounding the sum of `maximum` and `log` never moves it by more
/// than `log`, which would leave the maximum itself.
pub(super) fn log_error(units: &Units, maximum: f64, log: f64) -> f64 {
    3.0 * units.u * log + (3.0 * units.u * maximum.abs()).min(log)
}
