//! Describes a failure: where it sits, what it looks like, which bug makes such errors.

use super::bias::{NOTEWORTHY, bias};
use super::cell::{Mismatch, distance_to_cell};
use super::compare::{Comparison, Rule, read_bits};
use super::judge::Prepared;
use super::tile::tail_tile;
use crate::ops::Expectation;
use crate::schema::{Property, TensorSpec};
use crate::verdict::{BugClass, Check, Finding, WorstElement};

/// The mismatched elements of an output.
struct Errors<'a> {
    shape: &'a [usize],
    wrong: Vec<usize>,
    out: Vec<f64>,
    expected: &'a [f64],
}

/// Coordinates of a row-major index.
pub fn coordinates(mut flat: usize, shape: &[usize]) -> Vec<usize> {
    let mut index = vec![0; shape.len()];
    for (coordinate, size) in index.iter_mut().zip(shape).rev() {
        *coordinate = flat % size.max(&1);
        flat /= size.max(&1);
    }
    index
}

/// The finding for an output with mismatched elements.
pub fn describe(
    prepared: &Prepared<'_>,
    spec: &TensorSpec,
    rule: &Rule,
    bytes: &[u8],
    expectation: &Expectation,
    comparison: &Comparison,
) -> Finding {
    let shape = spec.shape(&prepared.case.descriptor.sizes).unwrap_or_default();
    let size = rule.dtype.size();
    let mut wrong = Vec::with_capacity(comparison.mismatched);
    let mut kinds = [0usize; 5];
    let mut worst: Option<(f64, usize)> = None;
    let mut excuses = expectation.excuses.iter().peekable();
    for (index, (y, delta)) in expectation.values.iter().zip(&expectation.delta).enumerate() {
        let excuse = excuses.next_if(|excuse| excuse.index == index).map(|excuse| excuse.kind);
        let bits = read_bits(bytes, size, index);
        let Err(kind) = rule.judge(bits, *y, *delta) else { continue };
        if excuse.is_some_and(|excuse| excuse.allows(rule.dtype, bits)) || rule.forgiven.covers(kind) {
            continue;
        }
        wrong.push(index);
        kinds[kind as usize] += 1;
        let severity = severity(rule, bits, *y, *delta);
        if worst.is_none_or(|(most, _)| severity > most) {
            worst = Some((severity, index));
        }
    }
    let worst_index = worst.map(|(_, index)| index);
    let most_frequent = (0..kinds.len()).max_by_key(|kind| (kinds[*kind], 5 - kind)).unwrap_or(0);
    let check =
        [Check::Value, Check::UnexpectedNan, Check::MissingNan, Check::UnexpectedInfinity, Check::MissingInfinity]
            [most_frequent];
    let out = (0..expectation.values.len()).map(|index| rule.dtype.decode(read_bits(bytes, size, index))).collect();
    let errors = Errors { shape: &shape, wrong, out, expected: &expectation.values };
    let (bug_class, mut notes) = if check == Check::Value {
        errors.classify(prepared, rule)
    } else {
        (BugClass::SpecialValues, vec!["NaN or infinity is mishandled".to_string()])
    };
    if let Some(z) = bias(rule.dtype, bytes, expectation).filter(|z| *z >= NOTEWORTHY) {
        notes.push(format!("errors lean to one side (z = {z:.0})"));
    }
    let elements = expectation.values.len();
    let mismatched = errors.wrong.len();
    Finding {
        check,
        tensor: spec.name.clone(),
        mismatched,
        elements,
        worst: worst_index.map(|index| worst_element(rule, bytes, expectation, index, &shape)),
        bug_class,
        places: Vec::new(),
        explanation: format!("{mismatched} of {elements} elements of '{}' differ; {}", spec.name, notes.join("; ")),
    }
}

/// The error of an element by the measure that decides: the distance to its cell, or the difference.
pub fn error_of(rule: &Rule, bits: u64, y: f64) -> f64 {
    if rule.tolerance.is_bound() {
        distance_to_cell(rule.dtype, bits, y, rule.rounding)
    } else {
        (rule.dtype.decode(bits) - y).abs()
    }
}

/// How far beyond what is allowed an element is; NaN and infinity are beyond everything.
fn severity(rule: &Rule, bits: u64, y: f64, delta: f64) -> f64 {
    let error = error_of(rule, bits, y);
    if !error.is_finite() || !y.is_finite() {
        return f64::INFINITY;
    }
    error / rule.tolerance.allowed(y, delta).max(f64::MIN_POSITIVE)
}

fn worst_element(rule: &Rule, bytes: &[u8], expectation: &Expectation, index: usize, shape: &[usize]) -> WorstElement {
    let bits = read_bits(bytes, rule.dtype.size(), index);
    let (expected, delta) = (expectation.values[index], expectation.delta[index]);
    WorstElement {
        index: coordinates(index, shape),
        actual: rule.dtype.decode(bits),
        expected,
        error: error_of(rule, bits, expected),
        allowed: rule.tolerance.allowed(expected, delta),
    }
}

impl Errors<'_> {
    fn classify(&self, prepared: &Prepared<'_>, rule: &Rule) -> (BugClass, Vec<String>) {
        let mut notes = Vec::new();
        if let Some(tile) = self.tail_tile() {
            notes.push(format!("all of them in the last, partial tile of {tile} along the last dim"));
            return (BugClass::TailTile, notes);
        }
        if let Some(note) = self.batch_index() {
            notes.push(note);
            return (BugClass::BatchIndex, notes);
        }
        let properties = &prepared.subject.schema().properties;
        if let Some((low, high)) = self.row_sums(properties) {
            notes.push(format!("rows sum to {low:.6}..{high:.6} in place of 1"));
            if high < 1.0 {
                return (BugClass::Padding, notes);
            }
        }
        if let Some(ratio) = self.constant_ratio(0, self.expected.len(), rule) {
            notes.push(format!("the output is {ratio:.4} times the right one"));
            return (BugClass::Scale, notes);
        }
        if self.row_ratios(rule) {
            notes.push("each row is off by a factor of its own".to_string());
            return (BugClass::Normaliser, notes);
        }
        if self.largest_ulps(rule) <= 4.0 {
            notes.push("by at most 4 ulp".to_string());
            return (BugClass::Precision, notes);
        }
        if properties.iter().any(|property| matches!(property, Property::Linear { .. })) {
            notes.push("terms of the sum are missing or counted twice".to_string());
            return (BugClass::Accumulator, notes);
        }
        notes.push("no pattern in place or ratio".to_string());
        (BugClass::Formula, notes)
    }

    /// The tile whose last, partial copy along the last dim holds every error, while others are right.
    fn tail_tile(&self) -> Option<usize> {
        let width = *self.shape.last()?;
        tail_tile(width, self.wrong.iter().map(|index| index % width))
    }

    fn batch_index(&self) -> Option<String> {
        let first = *self.shape.first().filter(|first| self.shape.len() > 1 && **first > 1)?;
        let entry = self.expected.len() / first;
        let clean = self.wrong.iter().all(|index| *index >= entry);
        let most = self.wrong.len() * 2 > self.expected.len() - entry;
        (clean && most && entry > 4).then(|| "the first entry of the batch is right, the others are not".to_string())
    }

    /// The one ratio of output to reference in a range, if there is one that is not 1.
    fn constant_ratio(&self, start: usize, end: usize, rule: &Rule) -> Option<f64> {
        let noise = rule.dtype.float_format().map_or(0.0, |format| 8.0 * format.unit_roundoff());
        let (mut low, mut high, mut count) = (f64::INFINITY, f64::NEG_INFINITY, 0);
        for index in self.wrong.iter().filter(|index| (start..end).contains(*index)) {
            let y = self.expected[*index];
            let smallest = rule.dtype.float_format().map_or(0.0, |format| format.min_normal());
            if !y.is_finite() || y.abs() < 64.0 * smallest || !self.out[*index].is_finite() {
                continue;
            }
            let ratio = self.out[*index] / y;
            low = low.min(ratio);
            high = high.max(ratio);
            count += 1;
        }
        let middle = 0.5 * (low + high);
        let constant = high - low <= (noise + 1e-5) * middle.abs();
        (count >= 3 && constant && (middle - 1.0).abs() > 4.0 * noise).then_some(middle)
    }

    fn row_sums(&self, properties: &[Property]) -> Option<(f64, f64)> {
        let width = *self.shape.last().filter(|width| **width > 0)?;
        if !properties.contains(&Property::RowStochastic) {
            return None;
        }
        let (mut low, mut high) = (f64::INFINITY, f64::NEG_INFINITY);
        for row in self.out.chunks_exact(width) {
            let sum: f64 = row.iter().sum();
            if sum.is_finite() {
                (low, high) = (low.min(sum), high.max(sum));
            }
        }
        (low < 1.0 - 1e-6 || high > 1.0 + 1e-6).then_some((low, high)).filter(|(low, _)| low.is_finite())
    }

    /// Whether every row with several errors has a ratio of its own.
    fn row_ratios(&self, rule: &Rule) -> bool {
        let Some(width) = self.shape.last().copied().filter(|width| *width >= 3) else { return false };
        let mut rows: Vec<usize> = self.wrong.iter().map(|index| index / width).collect();
        rows.dedup();
        let measured: Vec<bool> = rows
            .iter()
            .take(64)
            .filter(|row| self.wrong.iter().filter(|index| *index / width == **row).count() >= 3)
            .map(|row| self.constant_ratio(row * width, (row + 1) * width, rule).is_some())
            .collect();
        !measured.is_empty() && measured.iter().filter(|constant| **constant).count() * 4 >= measured.len() * 3
    }

    fn largest_ulps(&self, rule: &Rule) -> f64 {
        let Some(format) = rule.dtype.float_format() else { return f64::INFINITY };
        let ulps = self
            .wrong
            .iter()
            .map(|index| (self.out[*index] - self.expected[*index]).abs() / format.ulp(self.expected[*index]));
        ulps.fold(0.0, f64::max)
    }
}

/// The finding for output elements that still hold their poison.
pub fn not_written(spec: &TensorSpec, elements: usize, unwritten: &[usize]) -> Finding {
    let first = unwritten.first().copied().unwrap_or(0);
    Finding {
        check: Check::NotWritten,
        tensor: spec.name.clone(),
        mismatched: unwritten.len(),
        elements,
        worst: None,
        bug_class: BugClass::NeverWritten,
        places: Vec::new(),
        explanation: format!(
            "{} of {elements} elements of '{}' were never written, the first at flat index {first}",
            unwritten.len(),
            spec.name
        ),
    }
}

/// The finding for two runs that gave other bits.
pub fn nondeterministic(spec: &TensorSpec, first: &[u8], second: &[u8], size: usize) -> Finding {
    let pairs = first.chunks_exact(size).zip(second.chunks_exact(size));
    let differing = pairs.filter(|(first, second)| first != second).count();
    Finding {
        check: Check::Nondeterministic,
        tensor: spec.name.clone(),
        mismatched: differing,
        elements: first.len() / size,
        worst: None,
        bug_class: BugClass::Race,
        places: Vec::new(),
        explanation: format!(
            "a second run at other addresses changed {differing} elements of '{}'; if sums by atomics are meant, declare `atomics`",
            spec.name
        ),
    }
}

/// The order in which kinds of mismatch are counted.
const _: () = assert!(Mismatch::Value as usize == 0 && Mismatch::MissingInfinity as usize == 4);
