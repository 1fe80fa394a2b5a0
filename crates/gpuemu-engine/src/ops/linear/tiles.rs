//! A·B and |A|·|B| in one go: the value of a matrix product, and what its error is measured by.

use multiversion::multiversion;
use rayon::prelude::*;

/// Multiply-adds below which packing matrices into tiles costs more than it saves.
const TILED: usize = 1 << 16;

/// Multiply-adds above which rows are spread over cores.
const PARALLEL: usize = 1 << 21;

/// Magnitudes within this power of two either side of 1 have products that float32 holds well within its range.
const MODERATE: f64 = (1u64 << 40) as f64;

/// Terms up to which a float32 sum of positive numbers is within [`ROUNDED_UP`] of right, in any order.
const MODERATE_TERMS: usize = 1 << 13;

/// By how much magnitudes that were summed up in float32 are enlarged, so that they are never too small.
const ROUNDED_UP: f64 = 1.0 + 2.0 / 1024.0;

/// A·B and |A|·|B|. The magnitudes may be up to 0.2 % too large, never too small: where nothing can overflow they are
/// summed up in float32, at half the cost.
pub(in crate::ops) fn products(
    a: &[f64],
    b: &[f64],
    inner: usize,
    columns: usize,
    product: &mut [f64],
    magnitude: &mut [f64],
) {
    if inner == 0 || columns == 0 || product.is_empty() {
        return;
    }
    let work = product.len().saturating_mul(inner);
    if work < TILED {
        return plain(a, b, inner, columns, product, magnitude);
    }
    let rows = product.len() / columns;
    let strips = if work < PARALLEL { 1 } else { rayon::current_num_threads() };
    // Whole tiles of rows for each core.
    let strip = rows.div_ceil(strips).next_multiple_of(8);
    if inner <= MODERATE_TERMS && is_moderate(a) && is_moderate(b) {
        let absolute: Vec<f32> = b.iter().map(|x| x.abs() as f32).collect();
        let parts = product.par_chunks_mut(strip * columns).zip(magnitude.par_chunks_mut(strip * columns));
        parts.zip(a.par_chunks(strip * inner)).for_each(|((product, magnitude), a)| {
            double(a, b, inner, columns, product);
            let left: Vec<f32> = a.iter().map(|x| x.abs() as f32).collect();
            let mut sums = vec![0.0; magnitude.len()];
            single(&left, &absolute, inner, columns, &mut sums);
            magnitude.iter_mut().zip(&sums).for_each(|(magnitude, sum)| *magnitude = f64::from(*sum) * ROUNDED_UP);
        });
        return;
    }
    let absolute: Vec<f64> = b.iter().map(|x| x.abs()).collect();
    let parts = product.par_chunks_mut(strip * columns).zip(magnitude.par_chunks_mut(strip * columns));
    parts.zip(a.par_chunks(strip * inner)).for_each(|((product, magnitude), a)| {
        double(a, b, inner, columns, product);
        let left: Vec<f64> = a.iter().map(|x| x.abs()).collect();
        double(&left, &absolute, inner, columns, magnitude);
    });
}

/// Whether every number is zero or of a size whose products neither overflow nor vanish in float32.
fn is_moderate(values: &[f64]) -> bool {
    values.iter().all(|value| *value == 0.0 || (1.0 / MODERATE..=MODERATE).contains(&value.abs()))
}

/// A·B in float64.
#[allow(unsafe_code, reason = "the one way that the library has")]
fn double(a: &[f64], b: &[f64], inner: usize, columns: usize, product: &mut [f64]) {
    let rows = product.len() / columns;
    if a.len() != rows * inner || b.len() != inner * columns || product.len() != rows * columns {
        return product.fill(f64::NAN);
    }
    let (wide, deep) = (columns as isize, inner as isize);
    // SAFETY: the three matrices are row-major and have been checked to hold rows·inner, inner·columns and
    // rows·columns elements; the product is borrowed exclusively.
    unsafe {
        let (left, right, out) = (a.as_ptr(), b.as_ptr(), product.as_mut_ptr());
        matrixmultiply::dgemm(rows, inner, columns, 1.0, left, deep, 1, right, wide, 1, 0.0, out, wide, 1);
    }
}

/// A·B in float32.
#[allow(unsafe_code, reason = "the one way that the library has")]
fn single(a: &[f32], b: &[f32], inner: usize, columns: usize, product: &mut [f32]) {
    let rows = product.len() / columns;
    if a.len() != rows * inner || b.len() != inner * columns || product.len() != rows * columns {
        return product.fill(f32::NAN);
    }
    let (wide, deep) = (columns as isize, inner as isize);
    // SAFETY: as in `double`.
    unsafe {
        let (left, right, out) = (a.as_ptr(), b.as_ptr(), product.as_mut_ptr());
        matrixmultiply::sgemm(rows, inner, columns, 1.0, left, deep, 1, right, wide, 1, 0.0, out, wide, 1);
    }
}

/// Row by row, for matrices that are not worth tiles.
#[multiversion(targets("x86_64+avx512f+avx512vl+avx2+fma", "x86_64+avx2+fma", "aarch64+neon"))]
fn plain(a: &[f64], b: &[f64], inner: usize, columns: usize, product: &mut [f64], magnitude: &mut [f64]) {
    product.fill(0.0);
    magnitude.fill(0.0);
    let outputs = product.chunks_exact_mut(columns).zip(magnitude.chunks_exact_mut(columns));
    for (left, (product, magnitude)) in a.chunks_exact(inner).zip(outputs) {
        for (x, right) in left.iter().zip(b.chunks_exact(columns)) {
            let absolute = x.abs();
            for ((product, magnitude), y) in product.iter_mut().zip(magnitude.iter_mut()).zip(right) {
                *product += x * y;
                *magnitude += absolute * y.abs();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gpuemu_tensor::Stream;
    use gpuemu_tensor::rng::unit;

    fn matrix(seed: u64, count: usize, change: impl Fn(f64) -> f64) -> Vec<f64> {
        let mut stream = Stream::new(seed, "matrix");
        (0..count).map(|_| change(2.0 * unit(stream.next_word()) - 1.0)).collect()
    }

    /// The tiled forms against the plain one, on whatever `change` makes of numbers between −1 and 1.
    fn compare(rows: usize, inner: usize, columns: usize, change: impl Fn(f64) -> f64) {
        let (a, b) = (matrix(1, rows * inner, &change), matrix(2, inner * columns, &change));
        let blank = || vec![f64::NAN; rows * columns];
        let ((mut product, mut magnitude), (mut right, mut sum)) = ((blank(), blank()), (blank(), blank()));
        products(&a, &b, inner, columns, &mut product, &mut magnitude);
        plain(&a, &b, inner, columns, &mut right, &mut sum);
        for index in 0..rows * columns {
            let (found, expected, sum) = (product[index], right[index], sum[index]);
            let close = (found - expected).abs() <= 1e-13 * sum || (found.is_nan() && expected.is_nan());
            assert!(close || found == expected, "{rows}x{inner}x{columns} at {index}: {found} and {expected}");
            let enough = magnitude[index] >= sum * (1.0 - 1e-13) && magnitude[index] <= sum * 1.003;
            assert!(
                enough || sum.is_nan(),
                "{rows}x{inner}x{columns} at {index}: |A||B| {} and {sum}",
                magnitude[index]
            );
        }
    }

    #[test]
    fn tiles_give_what_rows_give() {
        for (rows, inner, columns) in [(64, 64, 64), (1, 300, 301), (131, 67, 129), (200, 1, 400), (257, 255, 31)] {
            compare(rows, inner, columns, |x| x);
            compare(rows, inner, columns, |x| (x * 8.0).trunc());
            // Beyond the range of float32, and below it.
            compare(rows, inner, columns, |x| x * if x > 0.5 { 1e30 } else { 1e-30 });
            compare(rows, inner, columns, |x| if x > 0.999 { f64::INFINITY } else { x });
            compare(rows, inner, columns, |x| if x > 0.999 { f64::NAN } else { x });
        }
        compare(130, 9000, 10, |x| x);
    }
}
