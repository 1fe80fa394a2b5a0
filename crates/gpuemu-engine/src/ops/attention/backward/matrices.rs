//! The matrices of a head's gradients, and their products with errors beside them.

use super::super::tile::{LANES, Panels, ROWS, products, rows_of};
use crate::ops::expectation::overflows;

/// Matrices of a row for each query and a column for each key.
#[derive(Default)]
pub(super) struct Matrices {
    pub(super) weights: Vec<f64>,
    /// ΔP.
    pub(super) moved: Vec<f64>,
    pub(super) slopes: Vec<f64>,
    /// X, the error of dS.
    pub(super) errors: Vec<f64>,
}

/// How a gradient is summed.
pub(super) struct Summing {
    pub(super) summation: f64,
    pub(super) scale: f64,
    pub(super) terms: usize,
}

/// One row as the kernel sees it.
pub(super) struct Line<'a> {
    pub(super) weights: &'a [f64],
    pub(super) errors: &'a [f64],
    pub(super) inner: &'a [f64],
    /// |dO||v|.
    pub(super) magnitude: &'a [f64],
    pub(super) seen: usize,
}

impl Line<'_> {
    pub(super) fn overflows(&self, max: f64) -> bool {
        self.magnitude.iter().any(|magnitude| !magnitude.is_finite() || overflows(2.0 * magnitude, max))
    }
}

impl Matrices {
    /// Adds a row of zeros.
    pub(super) fn blank(&mut self, keys: usize) {
        for matrix in [&mut self.weights, &mut self.moved, &mut self.slopes, &mut self.errors] {
            matrix.resize(matrix.len() + keys, 0.0);
        }
    }
}

/// A·B, |A|·|B| and ΔA·|B|.
pub(super) struct Combined {
    pub(super) product: Vec<f64>,
    pub(super) magnitude: Vec<f64>,
    pub(super) error: Vec<f64>,
    pub(super) stride: usize,
}

impl Combined {
    /// `count` rows of `left` and of its error `moved`.
    pub(super) fn of(count: usize, left: &[f64], moved: &[f64], right: &[f64], columns: usize) -> Self {
        let panels = Panels::new(right, columns);
        let stride = panels.stride();
        let inner = left.len().checked_div(count).unwrap_or(0);
        let padded = count.next_multiple_of(ROWS);
        let mut combined = Self {
            product: vec![0.0; padded * stride],
            magnitude: vec![0.0; padded * stride],
            error: vec![0.0; padded * stride],
            stride,
        };
        let blank = vec![0.0; inner];
        let mut unused = vec![0.0; ROWS * stride];
        for first in (0..count).step_by(ROWS) {
            let range = first * stride..(first + ROWS) * stride;
            let (product, magnitude) = (&mut combined.product[range.clone()], &mut combined.magnitude[range.clone()]);
            let a = rows_of(&left[first * inner..], inner, &blank);
            products(a, &panels, 0..inner, 0..stride / LANES, product, magnitude);
            let a = rows_of(&moved[first * inner..], inner, &blank);
            products(a, &panels, 0..inner, 0..stride / LANES, &mut unused, &mut combined.error[range]);
        }
        combined
    }
}

pub(super) fn transposed(matrix: &[f64], columns: usize) -> Vec<f64> {
    let rows = matrix.len().checked_div(columns).unwrap_or(0);
    (0..matrix.len()).map(|index| matrix[index % rows * columns + index / rows]).collect()
}
