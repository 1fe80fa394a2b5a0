//! matmul of two matrices.

pub(in crate::ops) use super::products::products;
use crate::case::Strategy;
use crate::ops::call::all_integers;
use crate::ops::expectation::overflows;
use crate::ops::reduction::sum::SUM_OVERFLOW;
use crate::ops::{BuiltIn, Call, Expectation, OpError};
use crate::schema::{Property, Schema};

/// The op.
pub(in crate::ops) fn op() -> BuiltIn {
    BuiltIn::new(
        Schema::builtin("matmul", "a[M,K] b[K,N] -> out[M,N]")
            .alias(&["gemm", "mm"])
            .reduces(&["K"])
            .describe("Matrix product; zeros where K is 0.", "out[i,j] = sum_k a[i,k]*b[k,j]")
            .bounded_by(
                "(u*F + 2*u_in + u_in^2)*sum|a*b| + K*(eta + flush) with F of K terms; 0 where all elements are whole numbers \
                 up to 2048 and sum|a*b| is exact in the accumulator",
                &["order", "accumulate", "tf32", "tensor_core", "flush_to_zero"],
            )
            .keywords(&["linear algebra", "matrix multiplication", "dot product", "dense", "tensor core", "split-k"])
            .holds(&[
                Property::Linear { input: "a" },
                Property::Linear { input: "b" },
                Property::Homogeneous { input: "a", degree: 1 },
                Property::Homogeneous { input: "b", degree: 1 },
            ])
            .amplified_by(&[Strategy::Integers, Strategy::Regular])
            .usual_bugs(&["accumulator overwritten", "K tail not masked", "accumulation in a narrow dtype"]),
        expect,
    )
}

fn expect(call: &Call<'_>) -> Result<Vec<Expectation>, OpError> {
    let (a, b) = (call.input("a")?, call.input("b")?);
    let (rows, inner, columns) = (call.size("M")?, call.size("K")?, call.size("N")?);
    let units = call.units;
    let mut product = vec![0.0; rows * columns];
    let mut magnitude = vec![0.0; rows * columns];
    products(a, b, inner, columns, &mut product, &mut magnitude);
    let exact = all_integers(a) && all_integers(b);
    let error = units.u * call.summation(inner.max(1))? + units.input * (2.0 + units.input);
    let underflow = inner as f64 * (units.eta + units.flush);
    let flushed = flushed_products(a, b, inner, columns, units.flush, product.len());
    let mut expectation = Expectation::with_capacity(product.len());
    for (index, (y, magnitude)) in product.iter().zip(&magnitude).enumerate() {
        if y.is_infinite()
            && units.reference == 0.0
            && overflows(finite_magnitude(a, b, inner, columns, index), units.max)
        {
            expectation.push_overflow(*y, 0.0, SUM_OVERFLOW, "|A||B| beside an infinity");
            continue;
        }
        let delta = if exact && *magnitude <= units.exact { 0.0 } else { error * magnitude + underflow };
        let delta = delta + flushed.as_ref().map_or(0.0, |flushed| flushed[index]);
        // In float64 the reference overflows with the kernel, and y says nothing.
        if overflows(*magnitude, units.max) && (y.is_finite() || units.reference > 0.0) {
            expectation.push_overflow(*y, delta, SUM_OVERFLOW, "|A||B|");
        } else {
            expectation.push(*y, delta);
        }
    }
    Ok(vec![expectation])
}

/// What is lost of each element where subnormal inputs count as zero: a subnormal number times a large one is not
/// small. `None` where nothing is flushed.
fn flushed_products(a: &[f64], b: &[f64], inner: usize, columns: usize, flush: f64, count: usize) -> Option<Vec<f64>> {
    if flush == 0.0 {
        return None;
    }
    let subnormal = |values: &[f64]| -> Vec<f64> {
        values.iter().map(|value| if value.abs() < flush { value.abs() } else { 0.0 }).collect()
    };
    let (mut unused, mut lost) = (vec![0.0; count], vec![0.0; count]);
    products(&subnormal(a), b, inner, columns, &mut unused, &mut lost);
    products(a, &subnormal(b), inner, columns, &mut unused, &mut lost);
    Some(lost)
}

/// Σ|a||b| over the finite products of one element.
fn finite_magnitude(a: &[f64], b: &[f64], inner: usize, columns: usize, index: usize) -> f64 {
    let row = &a[index / columns * inner..][..inner];
    let column = b.iter().skip(index % columns).step_by(columns);
    row.iter().zip(column).map(|(x, y)| (x * y).abs()).filter(|product| product.is_finite()).sum()
}
