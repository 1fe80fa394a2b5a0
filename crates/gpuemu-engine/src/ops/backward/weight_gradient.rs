//! Gradients that are summed over rows: those of a norm's weight and bias.

use crate::ops::{Arithmetic, Call, Expectation, OpError, Rounded};

/// Formulas that are the same for numbers differ for infinities: some cancel them.
pub(super) const INFINITE_GRADIENT: &str = "an infinite gradient in the row";

const LOST: &str = "a row whose norm is lost to rounding or overflow";

/// Normalised rows x̂ with their errors, in row-major order.
#[derive(Default)]
pub(super) struct NormalisedRows {
    /// x̂ of each element.
    pub values: Vec<Rounded>,
    /// Whether nothing is known of some row.
    pub lost: bool,
}

/// Σ over rows of grad_output·x̂, one for each of `width` columns.
pub(super) fn weight_gradient(
    call: &Call<'_>,
    gradient: &[f64],
    rows: &NormalisedRows,
    width: usize,
) -> Result<Expectation, OpError> {
    let (arithmetic, summation) = (Arithmetic::of(call), call.summation(call.batch_count().max(1))?);
    let mut expectation = Expectation::with_capacity(width);
    for column in 0..width {
        let pairs = || gradient.iter().zip(&rows.values).skip(column).step_by(width.max(1));
        let terms = pairs().map(|(dy, normalised)| arithmetic.multiply(Rounded::exact(*dy), *normalised));
        let sum = arithmetic.sum(terms, summation);
        // Infinity times a number whose sign rounding decides.
        let ambiguous = pairs().any(|(dy, normalised)| dy.is_infinite() && is_near_zero(normalised));
        if rows.lost || ambiguous {
            expectation.push_undetermined(sum.value, LOST);
        } else {
            expectation.push_rounded(sum, "sum of |grad_output*xhat| over rows");
        }
    }
    Ok(expectation)
}

/// Σ over rows of grad_output, one for each column.
pub(super) fn bias_gradient(call: &Call<'_>, gradient: &[f64], width: usize) -> Result<Expectation, OpError> {
    let (arithmetic, summation) = (Arithmetic::of(call), call.summation(call.batch_count().max(1))?);
    let mut expectation = Expectation::with_capacity(width);
    for column in 0..width {
        let terms = gradient.iter().skip(column).step_by(width.max(1)).map(|dy| Rounded::exact(*dy));
        expectation.push_rounded(arithmetic.sum(terms, summation), "sum of |grad_output| over rows");
    }
    Ok(expectation)
}

/// Whether a kernel's number may be zero or have the other sign.
fn is_near_zero(number: &Rounded) -> bool {
    number.value.abs() <= number.error
}
