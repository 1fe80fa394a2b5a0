//! logsumexp along the last dim.

use crate::case::Strategy;
use crate::ops::normalisation::log_softmax::{logarithm_condition, rounded_logarithm};
use crate::ops::normalisation::softmax::{FOLDED, RowSum};
use crate::ops::{BuiltIn, Call, Expectation, OpError};
use crate::schema::{Property, Schema};

pub(in crate::ops) fn op() -> BuiltIn {
    BuiltIn::new(
        Schema::builtin("logsumexp", "input[...,H] -> out[...]")
            .alias(&["log_sum_exp", "lse"])
            .reduces(&["H"])
            .describe(
                "Logarithm of the sum of exponentials along the last dim; -Inf for a row of nothing but -Inf and for one without elements, +Inf where a row has +Inf, as in PyTorch.",
                "max + log(sum(exp(x - max)))",
            )
            .keywords(&["softmax", "normaliser", "partition function", "log partition"])
            .bounded_by("u*(F + 3W + 5 + 3*ln(S) + 2*|m|) with S = sum(exp(x - m)), W = sum(p*(m - x))")
            .holds(&[Property::PermutationEquivariant, Property::BatchInvariant])
            .amplified_by(&[Strategy::Regular, Strategy::Tiny])
            .usual_bugs(&[
                "maximum not added back",
                "padding enters the sum",
                "NaN for a row of -Inf",
                "maximum not subtracted before exp",
            ]),
        expect,
    )
}

fn expect(call: &Call<'_>) -> Result<Vec<Expectation>, OpError> {
    let (input, width) = (call.input("input")?, call.size("H")?);
    let units = call.units;
    let mut expectation = Expectation::with_capacity(call.batch_count());
    let mut exponentials = vec![0.0; width];
    for number in 0..call.batch_count() {
        let row = input.get(number * width..(number + 1) * width).unwrap_or_default();
        let Some(row_sum) = RowSum::of(row, &mut exponentials, call) else {
            // NaN, or the infinity that the maximum is.
            let poisoned = row.iter().any(|x| x.is_nan());
            let maximum = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            expectation.push(if poisoned { f64::NAN } else { maximum }, 0.0);
            continue;
        };
        let y = row_sum.maximum + row_sum.logarithm;
        if row_sum.undetermined {
            expectation.push_undetermined(y, FOLDED);
            continue;
        }
        let (condition, underflow) = logarithm_condition(&row_sum, width, call)?;
        let rounded = rounded_logarithm(&row_sum, y, width, call);
        expectation.push(y, units.u * (condition + 2.0 * row_sum.maximum.abs()) + underflow + rounded);
    }
    Ok(vec![expectation])
}
