//! Losses.

pub(in crate::ops) mod binary_cross_entropy;
pub(in crate::ops) mod cross_entropy;
mod fused_linear_cross_entropy;
mod kl_div;
mod nll_loss;
mod regression;
mod row_loss;

use super::{Arithmetic, BuiltIn, Call, Expectation, OpError, Rounded};

/// The ops of this group.
pub(super) fn ops() -> Vec<BuiltIn> {
    vec![
        binary_cross_entropy::op(),
        cross_entropy::op(),
        cross_entropy::mean_op(),
        fused_linear_cross_entropy::op(),
        kl_div::op(),
        kl_div::batch_mean_op(),
        nll_loss::op(),
        regression::mse_loss(),
        regression::mse_loss_none(),
        regression::smooth_l1_loss(),
        regression::huber_loss(),
    ]
}

/// The mean over all elements of rows of `width`, `divisor` of them: NaN where there is none.
fn mean(
    terms: Vec<Rounded>,
    width: usize,
    divisor: usize,
    overflowing: &'static str,
    call: &Call<'_>,
) -> Result<Expectation, OpError> {
    let arithmetic = Arithmetic::of(call);
    let mut expectation = Expectation::with_capacity(1);
    if divisor == 0 || terms.is_empty() && width > 0 {
        expectation.push(f64::NAN, 0.0);
        return Ok(expectation);
    }
    // All elements in the one order, or rows first and then what they come to.
    let rows = terms.len() / width.max(1);
    let stages = call.summation(width.max(1))? + call.summation(rows.max(1))?;
    let summation = call.summation(terms.len().max(1))?.max(stages);
    let total = arithmetic.sum(terms, summation);
    expectation.push_rounded(arithmetic.divide(total, Rounded::exact(divisor as f64)), overflowing);
    Ok(expectation)
}
