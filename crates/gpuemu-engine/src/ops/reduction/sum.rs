//! sum along the last dim.

use crate::case::Strategy;
use crate::ops::call::all_integers;
use crate::ops::expectation::overflows;
use crate::ops::{BuiltIn, Call, ExcuseKind, Expectation, OpError};
use crate::schema::{Property, Schema};

pub(in crate::ops) fn op() -> BuiltIn {
    BuiltIn::new(
        Schema::builtin("sum", "input[...,H] -> out[...]")
            .reduces(&["H"])
            .alias(&["reduce_sum"])
            .describe("Sum along the last dim; of no elements it is 0.", "sum(x)")
            .holds(&[
                Property::PermutationEquivariant,
                Property::BatchInvariant,
                Property::Linear { input: "input" },
                Property::Homogeneous { input: "input", degree: 1 },
            ])
            .amplified_by(&[Strategy::Integers, Strategy::Shifted])
            .bounded_by("u*F*sum|x| + H*flush with F of H terms; without the first term where all x are whole numbers up to 2048 \
                 and sum|x| is exact in the accumulator")
            .keywords(&["reduction", "total", "accumulate", "row sum"])
            .usual_bugs(&[
                "tail elements dropped",
                "accumulation in a narrow dtype",
                "partial sums of blocks overwritten in place of added",
            ]),
        expect,
    )
}

fn expect(call: &Call<'_>) -> Result<Vec<Expectation>, OpError> {
    let (input, width) = (call.input("input")?, call.size("H")?);
    let units = call.units;
    let mut expectation = Expectation::with_capacity(call.batch_count());
    if width == 0 {
        (0..call.batch_count()).for_each(|_| expectation.push(0.0, 0.0));
        return Ok(vec![expectation]);
    }
    let summation = call.summation(width)?;
    for row in input.chunks_exact(width) {
        let total = RowTotal::of(row);
        let delta = units.u * total.error(summation, row, units.exact) + width as f64 * units.flush;
        if overflows(total.absolute, units.max) {
            expectation.push_overflow(total.sum, delta, SUM_OVERFLOW, "sum of |x|");
        } else {
            expectation.push(total.sum, delta);
        }
    }
    Ok(vec![expectation])
}

pub(in crate::ops) const SUM_OVERFLOW: ExcuseKind = ExcuseKind::Overflow { nan: true, infinite: true, value: None };

/// The sum of a row and of the magnitudes of its finite elements.
pub(in crate::ops) struct RowTotal {
    pub sum: f64,
    pub absolute: f64,
}

impl RowTotal {
    pub fn of(row: &[f64]) -> Self {
        let (mut sum, mut absolute) = (0.0, 0.0);
        for x in row {
            sum += x;
            // An infinity among the inputs is no overflow; what the others add up to may be one.
            absolute += if x.is_finite() { x.abs() } else { 0.0 };
        }
        Self { sum, absolute }
    }

    /// F·Σ|x|, in units of u; 0 where every partial sum is exact in any order.
    pub fn error(&self, summation: f64, row: &[f64], exact: f64) -> f64 {
        if self.absolute <= exact && all_integers(row) { 0.0 } else { summation * self.absolute }
    }
}
