//! Products of matrices with what a kernel may lose in them, for ops that do something to them afterwards.

use rayon::prelude::*;

use super::tiles::products;
use crate::ops::call::all_integers;
use crate::ops::expectation::overflows;
use crate::ops::rounded::ANY_OVERFLOW;
use crate::ops::{Arithmetic, Call, Expectation, OpError, Overflow, Rounded};

/// A·B of row-major matrices, with |A||B| beside it.
pub(in crate::ops) struct Products<'a> {
    a: &'a [f64],
    b: &'a [f64],
    inner: usize,
    columns: usize,
    /// A·B.
    pub values: Vec<f64>,
    /// |A||B|.
    pub magnitudes: Vec<f64>,
    /// What is lost where subnormal inputs count as zero.
    lost: Option<Vec<f64>>,
    whole: bool,
}

impl<'a> Products<'a> {
    /// A·B of a `rows` × `inner` and an `inner` × `columns` matrix.
    pub fn of(call: &Call<'_>, a: &'a [f64], b: &'a [f64], rows: usize, inner: usize, columns: usize) -> Self {
        let blank = || vec![0.0; rows * columns];
        let (mut values, mut magnitudes) = (blank(), blank());
        products(a, b, inner, columns, &mut values, &mut magnitudes);
        if let Some((a, b)) = aligned_by_tensor_cores(call, a, b) {
            products(&a, &b, inner, columns, &mut blank(), &mut magnitudes);
        }
        let flush = call.units.flush;
        let lost = (flush > 0.0).then(|| {
            // A subnormal number times a large one is not small.
            let subnormal = |values: &[f64]| -> Vec<f64> {
                values.iter().map(|value| if value.abs() < flush { value.abs() } else { 0.0 }).collect()
            };
            let (mut unused, mut lost, mut other) = (blank(), blank(), blank());
            products(&subnormal(a), b, inner, columns, &mut unused, &mut lost);
            products(a, &subnormal(b), inner, columns, &mut unused, &mut other);
            lost.iter_mut().zip(other).for_each(|(lost, other)| *lost += other);
            lost
        });
        let whole = all_integers(a) && all_integers(b);
        Self { a, b, inner, columns, values, magnitudes, lost, whole }
    }

    /// Σ|a||b| over the finite products of one element.
    fn finite_magnitude(&self, index: usize) -> f64 {
        let row = &self.a[index / self.columns * self.inner..][..self.inner];
        let column = self.b.iter().skip(index % self.columns).step_by(self.columns);
        row.iter().zip(column).map(|(x, y)| (x * y).abs()).filter(|product| product.is_finite()).sum()
    }

    /// One element with an addend that takes part in its sum. `roundings` are those that each term goes through.
    pub fn element(&self, call: &Call<'_>, index: usize, addend: f64, roundings: f64) -> Rounded {
        let units = &call.units;
        let value = self.values[index] + addend;
        let magnitude = self.magnitudes[index] + addend.abs();
        let whole = self.whole && addend.trunc() == addend && magnitude <= units.exact;
        let relative = units.u * roundings + units.input * (2.0 + units.input);
        let error = if whole || !value.is_finite() {
            0.0
        } else {
            relative * magnitude + self.inner as f64 * (units.eta + units.flush)
        };
        let lost = self.lost.as_ref().map_or(0.0, |lost| lost[index]);
        let beyond = if magnitude.is_infinite() && units.reference == 0.0 {
            let finite = if addend.is_finite() { addend.abs() } else { 0.0 };
            overflows(self.finite_magnitude(index) + finite, units.max)
        } else {
            overflows(magnitude, units.max)
        };
        // Infinities of both signs among the terms are NaN in every order.
        let settled = value.is_nan() && units.reference == 0.0;
        let overflow = if beyond && !settled { Overflow::Before } else { Overflow::None };
        Rounded { value, error: error + lost, overflow }
    }
}

/// Operands as large as tensor cores take them for when they align products: a subnormal number counts with the smallest
/// normal exponent, so that what is cut off beside it is that of a much larger product. None where that changes nothing.
fn aligned_by_tensor_cores(call: &Call<'_>, a: &[f64], b: &[f64]) -> Option<(Vec<f64>, Vec<f64>)> {
    let least = call.dtype.float_format().filter(|_| call.precision.tensor_core)?.min_normal();
    let is_small = |value: &f64| *value != 0.0 && value.abs() < least;
    if !a.iter().chain(b).any(is_small) {
        return None;
    }
    let lifted = |values: &[f64]| values.iter().map(|value| if is_small(value) { least } else { *value }).collect();
    Some((lifted(a), lifted(b)))
}

/// Pushes a computed element; an intermediate may have overflowed where the reference, in float64, did too.
pub(in crate::ops) fn push(expectation: &mut Expectation, x: Rounded, overflowing: &'static str) {
    if x.overflow == Overflow::Before {
        expectation.push_overflow(x.value, x.error, ANY_OVERFLOW, overflowing);
    } else {
        expectation.push(x.value, x.error);
    }
}

/// The expectation of plain products.
pub(in crate::ops) fn push_products(
    call: &Call<'_>,
    expectation: &mut Expectation,
    mut product: Products<'_>,
) -> Result<(), OpError> {
    let summation = call.summation(product.inner.max(1))?;
    let units = &call.units;
    let ordinary = |(value, magnitude): (&f64, &f64)| value.is_finite() && !overflows(*magnitude, units.max);
    let plain = product.lost.is_none() && !product.whole;
    if plain && product.values.par_iter().zip(&product.magnitudes).with_min_len(LEAST_PER_CORE).all(ordinary) {
        // Nothing to tell apart: what the loop below would do, without a branch and mostly without a copy.
        let relative = units.u * summation + units.input * (2.0 + units.input);
        let lost = product.inner as f64 * (units.eta + units.flush);
        let magnitudes = product.magnitudes.par_iter_mut().with_min_len(LEAST_PER_CORE);
        magnitudes.for_each(|magnitude| *magnitude = relative * *magnitude + lost);
        if expectation.values.is_empty() {
            (expectation.values, expectation.delta) = (product.values, product.magnitudes);
        } else {
            expectation.values.append(&mut product.values);
            expectation.delta.append(&mut product.magnitudes);
        }
        return Ok(());
    }
    for index in 0..product.values.len() {
        push(expectation, product.element(call, index, 0.0, summation), "|A||B|");
    }
    Ok(())
}

/// Elements that are worth the attention of another core.
const LEAST_PER_CORE: usize = 1 << 16;

/// A matrix of `rows` rows, turned.
pub(in crate::ops) fn transposed(matrix: &[f64], rows: usize, columns: usize) -> Vec<f64> {
    let mut turned = Vec::with_capacity(matrix.len());
    for column in 0..columns {
        turned.extend((0..rows).map(|row| matrix[row * columns + column]));
    }
    turned
}

/// x times factors, multiplied in any order: each product of some of them may underflow or overflow.
pub(in crate::ops) fn scaled(arithmetic: &Arithmetic, x: Rounded, factors: &[f64]) -> Rounded {
    let units = &arithmetic.units;
    let mut all = vec![x.value];
    all.extend_from_slice(factors);
    let spread: f64 = factors.iter().map(|factor| factor.abs()).product();
    let value = x.value * factors.iter().product::<f64>();
    let mut error = x.error * spread;
    let mut overflow = if x.overflow == Overflow::None { Overflow::None } else { Overflow::Before };
    let finite = all.iter().all(|factor| factor.is_finite());
    let every = (1usize << all.len()) - 1;
    for chosen in 1..every {
        let part = |inside: bool| -> f64 {
            let taken = |place: &usize| ((chosen >> place) & 1 == 1) == inside;
            (0..all.len()).filter(taken).map(|place| all[place].abs()).product()
        };
        let product = part(true);
        if chosen.count_ones() > 1 && product < units.tiny && product != 0.0 {
            error += (units.eta + units.flush) * part(false);
        }
        if product < units.flush {
            error += value.abs();
        }
        if finite && overflows(product, units.max) && chosen.count_ones() > 1 {
            overflow = Overflow::Before;
        }
    }
    if x.value != 0.0 || x.error != 0.0 {
        error += factors.len() as f64 * units.u * (value.abs() + error) + units.eta + units.flush;
    }
    if !value.is_finite() {
        error = 0.0;
    }
    if overflow == Overflow::None && overflows(value.abs() + error, units.max) && value.is_finite() {
        overflow = Overflow::Here;
    }
    Rounded { value, error, overflow }
}
