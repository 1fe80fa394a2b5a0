//! cross_entropy of logits against class indices, one loss per row.

use crate::case::Strategy;
use crate::ops::normalisation::log_softmax::{logarithm_condition, rounded_logarithm};
use crate::ops::normalisation::softmax::{FOLDED, RowSum};
use crate::ops::{BuiltIn, Call, Expectation, OpError};
use crate::schema::{Property, Schema};

/// The op.
pub(in crate::ops) fn op() -> BuiltIn {
    BuiltIn::new(
        Schema::builtin("cross_entropy", "input[N,V] target:int64[N] in 0..V -> out[N]")
            .reduces(&["V"])
            .at_least("V", 1)
            .describe("Negative log-likelihood of one class per row.", "max + log(sum(exp(x - max))) - x[target]")
            .holds(&[Property::ShiftInvariant { input: "input" }])
            .amplified_by(&[Strategy::Regular, Strategy::Tiny])
            .usual_bugs(&["padding enters the denominator", "target off by one", "maximum not added back"]),
        expect,
    )
}

fn expect(call: &Call<'_>) -> Result<Vec<Expectation>, OpError> {
    let (input, target, width) = (call.input("input")?, call.input("target")?, call.size("V")?);
    let mut expectation = Expectation::with_capacity(target.len());
    let mut exponentials = vec![0.0; width];
    for (row, target) in input.chunks_exact(width.max(1)).zip(target) {
        let chosen = row[*target as usize];
        let Some(row_sum) = RowSum::of(row, &mut exponentials, call) else {
            expectation.push(f64::NAN, 0.0);
            continue;
        };
        let y = (row_sum.maximum - chosen) + row_sum.logarithm;
        if row_sum.undetermined {
            expectation.push_undetermined(y, FOLDED);
            continue;
        }
        let (common, underflow) = logarithm_condition(&row_sum, width, call)?;
        let condition = common + 3.0 * (row_sum.maximum.abs() + chosen.abs());
        let rounded = rounded_logarithm(&row_sum, y, width, call);
        expectation.push(y, call.units.u * condition + underflow + rounded);
    }
    Ok(vec![expectation])
}
