//! cumsum along the last dim.

use crate::case::Strategy;
use crate::ops::call::all_integers;
use crate::ops::expectation::overflows;
use crate::ops::reduction::sum::SUM_OVERFLOW;
use crate::ops::{BuiltIn, Call, Expectation, OpError};
use crate::schema::{Property, Schema};

/// The op.
pub(in crate::ops) fn op() -> BuiltIn {
    BuiltIn::new(
        Schema::builtin("cumsum", "input[...,H] -> out[...,H]")
            .reduces(&["H"])
            .describe("Running sum along the last dim.", "out[i] = sum(x[0..=i])")
            .holds(&[
                Property::PermutationEquivariant,
                Property::BatchInvariant,
                Property::Linear { input: "input" },
                Property::Homogeneous { input: "input", degree: 1 },
            ])
            .amplified_by(&[Strategy::Integers, Strategy::Shifted])
            .usual_bugs(&["carry between tiles dropped", "exclusive in place of inclusive"]),
        expect,
    )
}

fn expect(call: &Call<'_>) -> Result<Vec<Expectation>, OpError> {
    let (input, width) = (call.input("input")?, call.size("H")?);
    let units = call.units;
    let mut expectation = Expectation::with_capacity(input.len());
    for row in input.chunks_exact(width.max(1)) {
        let integers = all_integers(row);
        let (mut sum, mut absolute) = (0.0, 0.0);
        for (index, x) in row.iter().enumerate() {
            sum += x;
            absolute += if x.is_finite() { x.abs() } else { 0.0 };
            let exact = integers && absolute <= units.exact;
            let error = if exact { 0.0 } else { call.summation(index + 1)? * absolute };
            let delta = units.u * error + (index + 1) as f64 * units.flush;
            if overflows(absolute, units.max) {
                expectation.push_overflow(sum, delta, SUM_OVERFLOW, "prefix sum of |x|");
            } else {
                expectation.push(sum, delta);
            }
        }
    }
    Ok(vec![expectation])
}
