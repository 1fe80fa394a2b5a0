//! Draws the errors of an output: every element judged once more by the rules that decided, and the results gathered
//! by place and by size.

use std::collections::BTreeMap;

use gpuemu_model::picture::{
    ElementError, ErrorHistogram, ErrorPicture, HeatMap, HistogramBin, Profile, Window, WindowElement,
};

use super::cell::Mismatch;
use super::compare::{Rule, read_bits};
use super::structure::{coordinates, error_of};
use super::tile::tile_along;
use crate::minimise::Neighbour;
use crate::ops::{ExcuseKind, Expectation};
use crate::schema::{Expression, TensorSpec};

/// Cells of a map at most, down and across.
const MOST_CELLS: (usize, usize) = (64, 96);

/// Elements around the worst one, down and across.
const WINDOW: (usize, usize) = (5, 7);

/// Bins of a histogram at most.
const MOST_BINS: usize = 24;

/// Smaller shares than 2 to the power of this are counted together.
const LOWEST_EXPONENT: i32 = -8;

/// One output of a case that was run.
#[derive(Debug, Clone, Copy)]
pub struct Drawn<'a> {
    pub spec: &'a TensorSpec,
    pub shape: &'a [usize],
    /// How it is judged.
    pub rule: &'a Rule,
    /// What was returned, contiguous.
    pub bytes: &'a [u8],
    pub expectation: &'a Expectation,
}

impl Drawn<'_> {
    /// The picture of its errors; `None` where no element is wrong. A passing case next to the smallest failing one
    /// says more about tiles than the errors do.
    pub fn picture(&self, neighbour: Option<&Neighbour>) -> Option<ErrorPicture> {
        let errors = self.errors();
        let mut worst = None;
        for (index, error) in errors.iter().enumerate().filter(|(_, error)| error.is_wrong()) {
            if worst.is_none_or(|known: usize| error.exceeds(errors[known])) {
                worst = Some(index);
            }
        }
        let worst = worst?;
        let rank = self.shape.len();
        let size = |from_end: usize| rank.checked_sub(from_end).map_or(1, |axis| self.shape[axis]);
        let (rows, columns) = (size(2), size(1));
        let (mut wrong_rows, mut wrong_columns) = (vec![false; rows], vec![false; columns]);
        for (index, _) in errors.iter().enumerate().filter(|(_, error)| error.is_wrong()) {
            wrong_rows[index / columns % rows] = true;
            wrong_columns[index % columns] = true;
        }
        let passing = |from_end: usize| {
            let axis = rank.checked_sub(from_end)?;
            neighbour.filter(|one| one.fails == one.passes + 1 && self.axis_of(&one.dimension) == Some(axis))
        };
        let passing_size = |from_end: usize| passing(from_end).map(|one| one.passes);
        Some(ErrorPicture {
            tensor: self.spec.name.clone(),
            dtype: self.rule.dtype,
            shape: self.shape.to_vec(),
            mismatched: errors.iter().filter(|error| error.is_wrong()).count(),
            elements: errors.len(),
            map: self.heat_map(&errors, rows, columns),
            row_tile: tile_along(&wrong_rows, passing_size(2)),
            column_tile: tile_along(&wrong_columns, passing_size(1)),
            histogram: histogram(&errors),
            profiles: profiles(&errors, self.shape),
            window: self.window(&errors, worst, rows, columns),
        })
    }

    /// The error of each element, as the comparison judges it.
    fn errors(&self) -> Vec<ElementError> {
        let mut excuses = self.expectation.excuses.iter().peekable();
        let elements = self.expectation.values.iter().zip(&self.expectation.delta).enumerate();
        let judge = |(index, (y, delta)): (usize, (&f64, &f64))| {
            let excuse = excuses.next_if(|excuse| excuse.index == index).map(|excuse| excuse.kind);
            self.error_at(index, *y, *delta, excuse)
        };
        elements.map(judge).collect()
    }

    fn error_at(&self, index: usize, y: f64, delta: f64, excuse: Option<ExcuseKind>) -> ElementError {
        if excuse == Some(ExcuseKind::Undetermined) || delta.is_nan() {
            return ElementError::NotJudged;
        }
        let bits = read_bits(self.bytes, self.rule.dtype.size(), index);
        let judged = self.rule.judge(bits, y, delta);
        if excuse.is_some_and(|excuse| judged.is_ok() || excuse.allows(self.rule.dtype, bits)) {
            return ElementError::NotJudged;
        }
        let share = || {
            let (error, allowed) = (error_of(self.rule, bits, y), self.rule.tolerance.allowed(y, delta));
            if error == 0.0 { 0.0 } else { error / allowed }
        };
        match judged {
            Ok(0.0) => ElementError::Share(0.0),
            // Where the class of the value decides there is no share; it passed.
            Ok(_) => ElementError::Share(Some(share()).filter(|share| *share <= 1.0).unwrap_or(0.0)),
            Err(mismatch) if self.rule.forgiven.covers(mismatch) => ElementError::NotJudged,
            // Where nothing but the right answer is allowed, an error that rounds to none is beyond everything.
            Err(Mismatch::Value) => {
                ElementError::Share(Some(share()).filter(|share| *share > 1.0).unwrap_or(f64::INFINITY))
            }
            Err(_) => ElementError::Special,
        }
    }

    fn actual(&self, index: usize) -> f64 {
        self.rule.dtype.decode(read_bits(self.bytes, self.rule.dtype.size(), index))
    }

    fn heat_map(&self, errors: &[ElementError], rows: usize, columns: usize) -> HeatMap {
        let (row_step, column_step) = (step_for(rows, MOST_CELLS.0), step_for(columns, MOST_CELLS.1));
        let width = columns.div_ceil(column_step);
        let count = rows.div_ceil(row_step) * width;
        let (mut cells, mut gravest) = (vec![ElementError::NotJudged; count], vec![0; count]);
        for (index, error) in errors.iter().enumerate() {
            let (row, column) = (index / columns % rows, index % columns);
            let place = row / row_step * width + column / column_step;
            if error.exceeds(cells[place]) {
                (cells[place], gravest[place]) = (*error, index);
            }
        }
        let ratio = |(cell, index): (&ElementError, &usize)| {
            let expected = self.expectation.values[*index];
            let known = cell.is_wrong() && expected != 0.0 && expected.is_finite();
            if known { self.actual(*index) / expected } else { f64::NAN }
        };
        let ratios = cells.iter().zip(&gravest).map(ratio).collect();
        HeatMap { rows, columns, entries: errors.len() / (rows * columns), row_step, column_step, cells, ratios }
    }

    /// The axis of the output that has the size of a dim.
    fn axis_of(&self, dimension: &str) -> Option<usize> {
        let named = |expression: &Expression| matches!(expression, Expression::Name(name) if name == dimension);
        let place = self.spec.dimensions.iter().position(named)?;
        Some(self.shape.len() - self.spec.dimensions.len() + place)
    }

    fn window(&self, errors: &[ElementError], worst: usize, rows: usize, columns: usize) -> Window {
        let (row, column) = (worst / columns % rows, worst % columns);
        let entry = worst - row * columns - column;
        let first =
            |place: usize, count: usize, size: usize| place.saturating_sub(count / 2).min(size.saturating_sub(count));
        let (first_row, first_column) = (first(row, WINDOW.0, rows), first(column, WINDOW.1, columns));
        let element = |index: usize| WindowElement {
            actual: self.actual(index),
            expected: self.expectation.values[index],
            error: errors[index],
        };
        let shown = |row: usize| {
            let from = entry + row * columns;
            (first_column..(first_column + WINDOW.1).min(columns)).map(|column| element(from + column)).collect()
        };
        let rows = (first_row..(first_row + WINDOW.0).min(rows)).map(shown).collect();
        Window { worst: coordinates(worst, self.shape), first_row, first_column, rows }
    }
}

/// The smallest power of two by which a size comes to at most so many steps: tiles are powers of two, and their
/// edges then lie between cells.
fn step_for(size: usize, most: usize) -> usize {
    let mut step = 1;
    while size.div_ceil(step) > most {
        step *= 2;
    }
    step
}

fn profiles(errors: &[ElementError], shape: &[usize]) -> Vec<Profile> {
    let mut found = Vec::new();
    let mut stride = errors.len();
    for (axis, size) in shape.iter().enumerate() {
        stride /= size;
        if *size < 2 {
            continue;
        }
        let step = step_for(*size, MOST_CELLS.1);
        let count = size.div_ceil(step);
        let mut profile = Profile {
            axis,
            size: *size,
            step,
            errors: vec![ElementError::NotJudged; count],
            mismatched: vec![0; count],
        };
        for (index, error) in errors.iter().enumerate() {
            let place = index / stride % size / step;
            profile.errors[place] = profile.errors[place].join(*error);
            profile.mismatched[place] += usize::from(error.is_wrong());
        }
        found.push(profile);
    }
    found
}

fn histogram(errors: &[ElementError]) -> ErrorHistogram {
    let mut histogram = ErrorHistogram::default();
    let mut exponents: BTreeMap<i32, usize> = BTreeMap::new();
    for error in errors {
        match error {
            ElementError::NotJudged => histogram.not_judged += 1,
            ElementError::Special => histogram.special += 1,
            ElementError::Share(0.0) => histogram.exact += 1,
            ElementError::Share(share) if share.is_infinite() => histogram.unbounded += 1,
            ElementError::Share(share) => {
                let exponent = share.log2().ceil() as i32;
                *exponents.entry(exponent.max(LOWEST_EXPONENT)).or_default() += 1;
            }
        }
    }
    let (Some(first), Some(last)) = (exponents.first_key_value(), exponents.last_key_value()) else { return histogram };
    let (first, last) = (*first.0, *last.0);
    // Bins that meet at 2⁰ keep what is allowed apart from what is not.
    let mut powers = 1;
    let bin_of = |exponent: i32, powers: i32| exponent.div_euclid(powers) + i32::from(exponent.rem_euclid(powers) != 0);
    while (bin_of(last, powers) - bin_of(first, powers)) as usize >= MOST_BINS {
        powers += 1;
    }
    let bins = bin_of(first, powers)..=bin_of(last, powers);
    histogram.bins = bins.map(|bin| HistogramBin { exponent: bin * powers, count: 0 }).collect();
    for (exponent, count) in exponents {
        let place = (bin_of(exponent, powers) - bin_of(first, powers)) as usize;
        histogram.bins[place].count += count;
    }
    histogram.powers = powers.unsigned_abs();
    histogram
}

#[cfg(test)]
mod tests;
