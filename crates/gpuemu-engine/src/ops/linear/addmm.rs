//! addmm: a matrix product added to a matrix, both scaled.

use super::product::{Products, push, scaled};
use crate::case::Strategy;
use crate::ops::{Arithmetic, BuiltIn, Call, Expectation, OpError, Rounded};
use crate::schema::{Property, Scalar, Schema};

pub(in crate::ops) fn op() -> BuiltIn {
    BuiltIn::new(
        Schema::builtin("addmm", "input[M,N] mat1[M,K] mat2[K,N] beta:float=1.0 alpha:float=1.0 -> out[M,N]")
            .alias(&["blas_gemm"])
            .describe(
                "Matrix product scaled by alpha, plus a matrix scaled by beta. Where beta is 0 the matrix is not read: \
            NaN and Inf in it do not reach the output.",
                "out = beta*input + alpha*(mat1 @ mat2)",
            )
            .help("input", "what is added; ignored where beta is 0")
            .help("beta", "factor on the matrix that is added")
            .help("alpha", "factor on the product")
            .keywords(&["gemm", "blas", "matrix product", "accumulate", "epilogue"])
            .reduces(&["K"])
            .choices("beta", &[Scalar::Float(1.0), Scalar::Float(0.0), Scalar::Float(0.1), Scalar::Float(-2.0)])
            .choices("alpha", &[Scalar::Float(1.0), Scalar::Float(0.5), Scalar::Float(-0.7)])
            .bounded_by(
                "u*(F(K+1) + 2)*(|alpha| sum_k |mat1||mat2| + |beta*input|): alpha may be applied before or after the \
            sum, and the sum may start at beta*input",
            )
            .holds(&[Property::Linear { input: "mat1" }, Property::Linear { input: "mat2" }])
            .amplified_by(&[Strategy::Integers, Strategy::Regular])
            .usual_bugs(&[
                "beta*input where beta is 0 and the input is NaN",
                "alpha applied to the sum of both",
                "alpha and beta swapped",
            ]),
        expect,
    )
}

fn expect(call: &Call<'_>) -> Result<Vec<Expectation>, OpError> {
    let (input, a, b) = (call.input("input")?, call.input("mat1")?, call.input("mat2")?);
    let (rows, inner, columns) = (call.size("M")?, call.size("K")?, call.size("N")?);
    let (alpha, beta) = (call.float("alpha")?, call.float("beta")?);
    let arithmetic = Arithmetic::of(call);
    let product = Products::of(call, a, b, rows, inner, columns);
    let summation = call.summation(inner + 1)?;
    let units = arithmetic.units;
    let factor = arithmetic.constant(alpha);
    let harmless = alpha.trunc() == alpha || alpha.abs().log2().fract() == 0.0;
    let lost = subnormal_operands(call, alpha, (a, b), (rows, inner, columns));
    let mut expectation = Expectation::with_capacity(product.values.len());
    for (index, x) in input.iter().enumerate() {
        let mut sum = product.element(call, index, 0.0, summation);
        let magnitude = alpha.abs() * product.magnitudes[index];
        // A whole number or power of two as factor leaves whole numbers exact.
        let mut exact = sum.error == 0.0 && sum.value.is_finite() && harmless && magnitude <= units.exact;
        if exact {
            sum.value *= alpha;
        } else if alpha != 1.0 {
            // Applied to each term it rounds each.
            let rounding = units.u + if alpha == 0.0 { 0.0 } else { factor.error / alpha.abs() };
            let missing = if sum.error > 0.0 { 0.0 } else { units.u * summation };
            if sum.value.is_finite() {
                sum = sum.widened((rounding + missing) * product.magnitudes[index]);
            }
            sum = scaled(&arithmetic, sum, &[alpha]);
            if let (Some(lost), true) = (&lost, sum.value.is_finite()) {
                sum = sum.widened((units.eta + units.flush) * lost[index]);
            }
        }
        sum = arithmetic.intermediate(sum);
        if beta != 0.0 {
            let mut added = arithmetic.multiply(arithmetic.constant(beta), Rounded::exact(*x));
            if beta == 1.0 {
                added = Rounded::exact(*x);
            }
            // A sum that starts with what is added carries it through every step, and may be whole no more.
            let terms = if exact { magnitude } else { 0.0 };
            exact &= added.error == 0.0 && added.value.trunc() == added.value;
            exact &= magnitude + added.value.abs() <= units.exact;
            let carried = if exact { 0.0 } else { units.u * summation * (added.value.abs() + terms) };
            sum = arithmetic.add(sum, added.widened(if sum.value.is_finite() { carried } else { 0.0 }));
        }
        if !sum.value.is_finite() {
            sum.error = 0.0;
        }
        push(&mut expectation, sum, "alpha*|A||B|");
    }
    Ok(vec![expectation])
}

/// Σ|b| where alpha·a is subnormal and Σ|a| where alpha·b is: what a rounding of the small one is multiplied with.
fn subnormal_operands(
    call: &Call<'_>,
    alpha: f64,
    (a, b): (&[f64], &[f64]),
    (rows, inner, columns): (usize, usize, usize),
) -> Option<Vec<f64>> {
    let small = |x: &f64| *x != 0.0 && (x * alpha).abs() < 2.0 * call.units.tiny;
    if alpha == 1.0 || !a.iter().chain(b).any(small) {
        return None;
    }
    let marks = |values: &[f64]| -> Vec<f64> { values.iter().map(|x| f64::from(u8::from(small(x)))).collect() };
    let (left, right) = (marks(a), marks(b));
    let mut lost = Products::of(call, &left, b, rows, inner, columns).magnitudes;
    let others = Products::of(call, a, &right, rows, inner, columns).magnitudes;
    lost.iter_mut().zip(others).for_each(|(lost, other)| *lost += other);
    Some(lost)
}
