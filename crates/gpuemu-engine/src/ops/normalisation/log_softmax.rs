//! log_softmax along the last dim.

use crate::case::Strategy;
use crate::ops::normalisation::softmax::{FOLDED, RowSum};
use crate::ops::{BuiltIn, Call, Expectation, OpError};
use crate::schema::{Property, Schema};

pub(in crate::ops) fn op() -> BuiltIn {
    BuiltIn::new(
        Schema::builtin("log_softmax", "input[...,H] -> out[...,H]")
            .reduces(&["H"])
            .describe(
                "Natural logarithm of the softmax along the last dim; a row with NaN or Inf, or of nothing but -Inf, is \
                 NaN, and -Inf beside numbers stays -Inf.",
                "x - max - log(sum(exp(x - max)))",
            )
            .holds(&[
                Property::PermutationEquivariant,
                Property::BatchInvariant,
                Property::ShiftInvariant { input: "input" },
            ])
            .amplified_by(&[Strategy::Regular, Strategy::Tiny])
            .bounded_by("u*(F + a*W + E + 3*log(S) + 3*(|max| + |x|)) + H*tiny/S + eta + flush + u_mid*(W + 2 + |max| + 2*log(S) + \
                 2*|y|) + (3 + H)*eta_mid with F of H terms, S = sum(exp(x - max)), W = sum(softmax*(max - x)), which \
                 grows by |max| where folded")
            .keywords(&["normalisation", "log probabilities", "logits", "nll", "logsumexp"])
            .usual_bugs(&[
                "padding enters the denominator",
                "log of a softmax that underflowed",
                "maximum subtracted in the exponent and not outside of it",
            ]),
        expect,
    )
}

fn expect(call: &Call<'_>) -> Result<Vec<Expectation>, OpError> {
    let (input, width) = (call.input("input")?, call.size("H")?);
    let mut expectation = Expectation::with_capacity(input.len());
    let mut exponentials = vec![0.0; width];
    for row in input.chunks_exact(width.max(1)) {
        let Some(row_sum) = RowSum::of(row, &mut exponentials, call) else {
            row.iter().for_each(|_| expectation.push(f64::NAN, 0.0));
            continue;
        };
        let log = row_sum.logarithm;
        let (common, underflow) = logarithm_condition(&row_sum, width, call)?;
        for x in row {
            let y = (x - row_sum.maximum) - log;
            if row_sum.undetermined {
                expectation.push_undetermined(y, FOLDED);
                continue;
            }
            let condition = common + 3.0 * (row_sum.maximum.abs() + x.abs());
            let rounded = rounded_logarithm(&row_sum, y, width, call);
            expectation.push(y, call.units.u * condition + underflow + rounded);
        }
    }
    Ok(vec![expectation])
}

/// The error of max + log Σ e^(x−m) and of the result where both are rounded to an intermediate dtype.
pub(in crate::ops) fn rounded_logarithm(row_sum: &RowSum, y: f64, width: usize, call: &Call<'_>) -> f64 {
    let units = call.units;
    if units.mid == 0.0 || !y.is_finite() {
        return 0.0;
    }
    // x − m, its exponential and their sum: a relative error of the sum is an absolute one of its logarithm.
    let sum = row_sum.spread + 2.0;
    units.mid * (sum + row_sum.maximum.abs() + 2.0 * row_sum.logarithm.abs() + 2.0 * y.abs())
        + (3.0 + width as f64) * units.mid_eta
}

/// F + aW + E + 3 ln S, the error of log Σ e^(x−m) in units of u, and its underflow term.
pub(in crate::ops) fn logarithm_condition(
    row_sum: &RowSum,
    width: usize,
    call: &Call<'_>,
) -> Result<(f64, f64), OpError> {
    let units = call.units;
    let condition =
        call.summation(width.max(1))? + units.argument * row_sum.spread + units.exp + 3.0 * row_sum.logarithm;
    Ok((condition, width as f64 * units.tiny / row_sum.sum + units.eta + units.flush))
}
