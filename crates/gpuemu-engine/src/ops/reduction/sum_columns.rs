//! sum along the first of two dims.

use crate::case::Strategy;
use crate::ops::expectation::overflows;
use crate::ops::reduction::sum::{RowTotal, SUM_OVERFLOW};
use crate::ops::{BuiltIn, Call, Expectation, OpError};
use crate::schema::{Property, Schema};

pub(in crate::ops) fn op() -> BuiltIn {
    BuiltIn::new(
        Schema::builtin("sum_columns", "input[M,N] -> out[N]")
            .alias(&["column_sum", "sum_dim0", "bias_grad"])
            .reduces(&["M"])
            .describe(
                "Sum along the first dim, as sum(dim=0) of a matrix; 0 where it has no rows.",
                "out[n] = sum over m of x[m, n]",
            )
            .keywords(&["column", "first dim", "axis 0", "bias gradient"])
            .bounded_by("u*F*sum|x|; 0 where all partial sums are whole numbers that fit")
            .holds(&[Property::Linear { input: "input" }, Property::Homogeneous { input: "input", degree: 1 }])
            .amplified_by(&[Strategy::Integers, Strategy::Shifted])
            .usual_bugs(&[
                "last partial tile of rows dropped",
                "rows and columns mixed up",
                "tiles overwrite one another in place of adding",
                "accumulation in a narrow dtype",
            ]),
        expect,
    )
}

fn expect(call: &Call<'_>) -> Result<Vec<Expectation>, OpError> {
    let (input, rows, columns) = (call.input("input")?, call.size("M")?, call.size("N")?);
    let units = call.units;
    let summation = call.summation(rows.max(1))?;
    let mut expectation = Expectation::with_capacity(columns);
    for column in 0..columns {
        let terms: Vec<f64> = input.iter().skip(column).step_by(columns).copied().collect();
        let total = RowTotal::of(&terms);
        let delta = units.u * total.error(summation, &terms, units.exact) + rows as f64 * units.flush;
        if overflows(total.absolute, units.max) {
            expectation.push_overflow(total.sum, delta, SUM_OVERFLOW, "sum of |x|");
        } else {
            expectation.push(total.sum, delta);
        }
    }
    Ok(vec![expectation])
}
