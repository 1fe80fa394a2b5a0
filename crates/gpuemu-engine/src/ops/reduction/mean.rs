//! mean along the last dim.

use crate::case::Strategy;
use crate::ops::expectation::overflows;
use crate::ops::reduction::sum::{RowTotal, SUM_OVERFLOW};
use crate::ops::{BuiltIn, Call, Expectation, OpError};
use crate::schema::{Property, Schema};

pub(in crate::ops) fn op() -> BuiltIn {
    BuiltIn::new(
        Schema::builtin("mean", "input[...,H] -> out[...]")
            .reduces(&["H"])
            .at_least("H", 1)
            .alias(&["reduce_mean"])
            .describe("Mean along the last dim.", "sum(x)/H")
            .holds(&[
                Property::PermutationEquivariant,
                Property::BatchInvariant,
                Property::Homogeneous { input: "input", degree: 1 },
            ])
            .amplified_by(&[Strategy::Integers, Strategy::Shifted])
            .bounded_by("u*(F*sum|x|/H + 3*|y|) + eta + 2*flush with F of H terms; without F where all x are whole numbers up to \
                 2048 and sum|x| is exact in the accumulator")
            .keywords(&["reduction", "average", "row mean"])
            .usual_bugs(&["divided by the padded width", "tail elements dropped", "accumulation in a narrow dtype"]),
        expect,
    )
}

fn expect(call: &Call<'_>) -> Result<Vec<Expectation>, OpError> {
    let (input, width) = (call.input("input")?, call.size("H")?);
    let summation = call.summation(width.max(1))?;
    let units = call.units;
    let count = width as f64;
    let mut expectation = Expectation::with_capacity(call.batch_count());
    for row in input.chunks_exact(width.max(1)) {
        let total = RowTotal::of(row);
        let y = total.sum / count;
        // A division or a multiplication with 1/H, within Q/2 + 1 roundings.
        let condition = total.error(summation, row, units.exact) / count + 3.0 * y.abs();
        let delta = units.u * condition + units.eta + 2.0 * units.flush;
        if overflows(total.absolute, units.max) {
            expectation.push_overflow(y, delta, SUM_OVERFLOW, "sum of |x|");
        } else {
            expectation.push(y, delta);
        }
    }
    Ok(vec![expectation])
}
