//! Products of a few rows with a packed matrix in float64, with what the bounds need beside them.

use std::ops::Range;

use multiversion::multiversion;

/// Rows that are computed together.
pub(super) const ROWS: usize = 4;
/// Columns of a panel.
pub(super) const LANES: usize = 8;

/// A matrix in panels of [`LANES`] columns, each row-major; zeros fill the last one.
pub(super) struct Panels {
    values: Vec<f64>,
    inner: usize,
    count: usize,
}

impl Panels {
    /// The matrix of these rows.
    pub fn new(matrix: &[f64], columns: usize) -> Self {
        let inner = matrix.len().checked_div(columns).unwrap_or(0);
        let mut panels = Self::zeros(inner, columns);
        for (row, values) in matrix.chunks_exact(columns.max(1)).enumerate() {
            for (panel, values) in values.chunks(LANES).enumerate() {
                let start = (panel * inner + row) * LANES;
                panels.values[start..start + values.len()].copy_from_slice(values);
            }
        }
        panels
    }

    /// The matrix of which these are the columns, each of `inner` elements.
    pub fn transposed(matrix: &[f64], inner: usize) -> Self {
        let mut panels = Self::zeros(inner, matrix.len().checked_div(inner).unwrap_or(0));
        for (column, values) in matrix.chunks_exact(inner.max(1)).enumerate() {
            let start = column / LANES * inner * LANES + column % LANES;
            for (place, value) in panels.values[start..].iter_mut().step_by(LANES).zip(values) {
                *place = *value;
            }
        }
        panels
    }

    fn zeros(inner: usize, columns: usize) -> Self {
        let count = columns.div_ceil(LANES);
        Self { values: vec![0.0; count * inner * LANES], inner, count }
    }

    /// Columns with those that fill the last panel.
    pub fn stride(&self) -> usize {
        self.count * LANES
    }

    fn panel(&self, panel: usize, inner: &Range<usize>) -> &[f64] {
        &self.values[(panel * self.inner + inner.start) * LANES..(panel * self.inner + inner.end) * LANES]
    }
}

/// The panels that hold a range of columns.
pub(super) fn panels_of(columns: &Range<usize>) -> Range<usize> {
    columns.start / LANES..columns.end.div_ceil(LANES)
}

/// At most [`ROWS`] rows of a matrix; `blank` takes the place of those that it has not.
pub(super) fn rows_of<'a>(matrix: &'a [f64], width: usize, blank: &'a [f64]) -> [&'a [f64]; ROWS] {
    std::array::from_fn(|row| matrix.get(row * width..(row + 1) * width).unwrap_or(blank))
}

const ZERO: [f64; LANES] = [0.0; LANES];

#[inline(always)]
fn add_products(sum: &mut [f64; LANES], size: &mut [f64; LANES], x: f64, right: &[f64; LANES]) {
    for lane in 0..LANES {
        let product = x * right[lane];
        sum[lane] += product;
        size[lane] += product.abs();
    }
}

#[inline(always)]
fn add_spread(sum: &mut [f64; LANES], x: f64, right: &[f64; LANES], centre: &[f64; LANES]) {
    for lane in 0..LANES {
        sum[lane] += x * (right[lane] - centre[lane]).abs();
    }
}

/// A·B and |A|·|B| in the columns of some panels, over a range of the inner dim. Results have a row each of
/// `b.stride()` elements.
#[multiversion(targets("x86_64+avx512f+avx512vl+avx2+fma", "x86_64+avx2+fma", "aarch64+neon"))]
pub(super) fn products(
    a: [&[f64]; ROWS],
    b: &Panels,
    inner: Range<usize>,
    panels: Range<usize>,
    product: &mut [f64],
    magnitude: &mut [f64],
) {
    let stride = b.stride();
    let a = a.map(|row| &row[inner.clone()]);
    for panel in panels {
        let (mut s0, mut s1, mut s2, mut s3) = (ZERO, ZERO, ZERO, ZERO);
        let (mut m0, mut m1, mut m2, mut m3) = (ZERO, ZERO, ZERO, ZERO);
        let rows = a[0].iter().zip(a[1]).zip(a[2]).zip(a[3]);
        for ((((a0, a1), a2), a3), right) in rows.zip(b.panel(panel, &inner).as_chunks::<LANES>().0) {
            // Row by row in writing, so that each accumulator is a register.
            add_products(&mut s0, &mut m0, *a0, right);
            add_products(&mut s1, &mut m1, *a1, right);
            add_products(&mut s2, &mut m2, *a2, right);
            add_products(&mut s3, &mut m3, *a3, right);
        }
        for (row, (sum, size)) in [(s0, m0), (s1, m1), (s2, m2), (s3, m3)].into_iter().enumerate() {
            let start = row * stride + panel * LANES;
            product[start..start + LANES].copy_from_slice(&sum);
            magnitude[start..start + LANES].copy_from_slice(&size);
        }
    }
}

/// Σ a·|b − centre| for a ≥ 0 in every column, over a range of the inner dim.
#[multiversion(targets("x86_64+avx512f+avx512vl+avx2+fma", "x86_64+avx2+fma", "aarch64+neon"))]
pub(super) fn spreads(a: [&[f64]; ROWS], b: &Panels, inner: Range<usize>, centre: &[f64], spread: &mut [f64]) {
    let stride = b.stride();
    let a = a.map(|row| &row[inner.clone()]);
    for panel in 0..b.count {
        let (mut s0, mut s1, mut s2, mut s3) = (ZERO, ZERO, ZERO, ZERO);
        let middle = |row: usize| {
            let mut lanes = ZERO;
            lanes.copy_from_slice(&centre[row * stride + panel * LANES..][..LANES]);
            lanes
        };
        let (c0, c1, c2, c3) = (middle(0), middle(1), middle(2), middle(3));
        let rows = a[0].iter().zip(a[1]).zip(a[2]).zip(a[3]);
        for ((((a0, a1), a2), a3), right) in rows.zip(b.panel(panel, &inner).as_chunks::<LANES>().0) {
            add_spread(&mut s0, *a0, right, &c0);
            add_spread(&mut s1, *a1, right, &c1);
            add_spread(&mut s2, *a2, right, &c2);
            add_spread(&mut s3, *a3, right, &c3);
        }
        for (row, sum) in [s0, s1, s2, s3].into_iter().enumerate() {
            let start = row * stride + panel * LANES;
            spread[start..start + LANES].copy_from_slice(&sum);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn products_and_spreads_are_what_loops_give() {
        for (inner, columns) in [(1, 1), (3, 8), (5, 13), (0, 4), (7, 0)] {
            let value = |index: usize| ((index * 37 + 11) % 17) as f64 - 8.0;
            let a: Vec<f64> = (0..ROWS * inner).map(value).collect();
            let b: Vec<f64> = (0..inner * columns).map(|index| value(index * 3 + 1)).collect();
            let transposed: Vec<f64> =
                (0..inner * columns).map(|index| b[index % inner * columns + index / inner]).collect();
            let rows: [&[f64]; ROWS] = std::array::from_fn(|row| &a[row * inner..][..inner]);
            for panels in [Panels::new(&b, columns), Panels::transposed(&transposed, inner)] {
                let stride = if inner == 0 { 0 } else { panels.stride() };
                let mut results = vec![vec![0.0; ROWS * stride]; 3];
                let [product, magnitude, spread] = &mut results[..] else { unreachable!() };
                if inner == 0 || columns == 0 {
                    continue;
                }
                products(rows, &panels, 0..inner, panels_of(&(0..columns)), product, magnitude);
                let absolute: Vec<f64> = a.iter().map(|x| x.abs()).collect();
                let absolute: [&[f64]; ROWS] = std::array::from_fn(|row| &absolute[row * inner..][..inner]);
                spreads(absolute, &panels, 0..inner, product, spread);
                for (row, left) in rows.iter().enumerate() {
                    for column in 0..columns {
                        let pairs = || (0..inner).map(|k| (left[k], b[k * columns + column]));
                        let place = row * stride + column;
                        assert_eq!(product[place], pairs().map(|(x, y)| x * y).sum::<f64>());
                        assert_eq!(magnitude[place], pairs().map(|(x, y)| (x * y).abs()).sum::<f64>());
                        let moved: f64 = pairs().map(|(x, y)| x.abs() * (y - product[place]).abs()).sum();
                        assert_eq!(spread[place], moved);
                    }
                }
            }
        }
    }
}
