//! relu_: max(x, 0), written over its input.

use crate::case::Strategy;
use crate::ops::{BuiltIn, Call, Expectation, OpError};
use crate::schema::{Property, Schema};

pub(in crate::ops) fn op() -> BuiltIn {
    BuiltIn::new(
        Schema::builtin("relu_", "input[...] -> input[...]")
            .alias(&["relu_inplace"])
            .describe("Negative elements become zero, in place; NaN stays NaN.", "input = max(input, 0)")
            .help("input", "read, and overwritten with the result")
            .keywords(&["activation", "rectifier", "in place", "pointwise"])
            .bounded_by("0: the result is a copy or 0")
            .holds(&[
                Property::PermutationEquivariant,
                Property::BatchInvariant,
                Property::Homogeneous { input: "input", degree: 1 },
            ])
            .amplified_by(&[Strategy::Regular, Strategy::Special])
            .usual_bugs(&[
                "threshold other than zero",
                "NaN becomes zero",
                "written to a copy, the input left as it was",
            ]),
        expect,
    )
}

fn expect(call: &Call<'_>) -> Result<Vec<Expectation>, OpError> {
    let flush = call.units.flush;
    call.elementwise("input", |x| (if x.is_nan() || x > 0.0 { x } else { 0.0 }, flush))
}
