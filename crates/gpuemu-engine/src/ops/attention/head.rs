//! What queries look at: keys and values packed once, and which of them each query sees.

use std::ops::Range;

use super::tile::Panels;
use crate::ops::expectation::overflows;
use crate::ops::{Call, OpError};

/// Which keys a query sees: a range, without those that a mask hides, and what is added to their scores.
#[derive(Clone)]
pub(super) struct Sight<'a> {
    /// The keys in reach.
    pub range: Range<usize>,
    /// For each key of the head, 0 where it is hidden.
    pub mask: Option<&'a [f64]>,
    /// For each key of the head, what its score is moved by.
    pub bias: Option<&'a [f64]>,
}

impl Sight<'_> {
    /// The keys of a range, all of them.
    pub fn of(range: Range<usize>) -> Self {
        Self { range, mask: None, bias: None }
    }

    pub fn sees(&self, key: usize) -> bool {
        self.range.contains(&key) && self.mask.is_none_or(|mask| mask[key] != 0.0)
    }
}

/// What partial results of several splits of the keys lose when they are merged.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Merging {
    /// Splits that are merged; none or one loses nothing.
    pub splits: usize,
}

/// The keys and values that some queries look at.
pub(super) struct Head<'a> {
    pub keys: usize,
    /// Elements of a key and of a value.
    pub width: usize,
    /// Keys, one after the other.
    pub k: &'a [f64],
    /// Values, one after the other.
    pub v: &'a [f64],
    pub key_panels: Panels,
    /// The keys' subnormal elements, where those may count as zero.
    pub subnormal_panels: Option<Panels>,
    pub value_panels: Panels,
    /// The largest |k| of each element.
    reach: Vec<f64>,
    /// Σ|v| of the keys before each key, by column.
    pub prefix: Vec<f64>,
    /// Columns of values that are not all finite.
    pub special: Vec<bool>,
    /// F(N).
    pub sum: f64,
    /// How results of splits are merged.
    pub merging: Merging,
}

impl<'a> Head<'a> {
    /// Packs keys and values of `width` elements each.
    pub fn new(call: &Call<'_>, k: &'a [f64], v: &'a [f64], width: usize, merging: Merging) -> Result<Self, OpError> {
        let keys = k.len().checked_div(width).unwrap_or(0);
        let flush = call.units.flush;
        let mut reach = vec![0.0f64; width];
        for key in k.chunks_exact(width.max(1)) {
            for (most, element) in reach.iter_mut().zip(key) {
                let size = if element.is_nan() { f64::INFINITY } else { element.abs() };
                *most = if size > *most { size } else { *most };
            }
        }
        let (mut prefix, mut special) = (vec![0.0; width], vec![false; width]);
        prefix.reserve(v.len());
        for (key, row) in v.chunks_exact(width.max(1)).enumerate() {
            for (column, value) in row.iter().enumerate() {
                special[column] |= !value.is_finite();
                prefix.push(prefix[key * width + column] + value.abs());
            }
        }
        Ok(Self {
            keys,
            width,
            k,
            v,
            key_panels: Panels::transposed(k, width),
            subnormal_panels: (flush > 0.0).then(|| Panels::transposed(&subnormal(k, flush), width)),
            value_panels: Panels::new(v, width),
            reach,
            prefix,
            special,
            sum: call.summation(keys.max(1))?,
            merging,
        })
    }

    /// The largest Σ|v| of a column.
    pub fn largest_sum(&self) -> f64 {
        self.prefix[self.keys * self.width..].iter().fold(0.0, |most, sum| if *sum > most { *sum } else { most })
    }

    /// Whether a score that a query does not see overflows or is not finite.
    pub fn masked_overflow(&self, q: &[f64], sight: &Sight<'_>, max: f64) -> bool {
        if sight.range == (0..self.keys) && sight.mask.is_none() {
            return false;
        }
        let bad = |magnitude: f64| !magnitude.is_finite() || overflows(magnitude, max);
        let most: f64 = q.iter().zip(&self.reach).map(|(x, reach)| x.abs() * reach).sum();
        let magnitude = |key: &[f64]| q.iter().zip(key).map(|(x, y)| (x * y).abs()).sum();
        let hidden = |key: &usize| !sight.sees(*key);
        bad(most) && (0..self.keys).filter(hidden).any(|key| bad(magnitude(&self.k[key * self.width..][..self.width])))
    }
}

/// The values below `flush`, zeros in place of the others.
pub(super) fn subnormal(values: &[f64], flush: f64) -> Vec<f64> {
    values.iter().map(|value| if value.abs() < flush { *value } else { 0.0 }).collect()
}
