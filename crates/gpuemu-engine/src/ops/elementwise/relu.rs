//! relu: max(x, 0).

use crate::ops::{BuiltIn, Call, Expectation, OpError};
use crate::schema::{Property, Schema};

pub(in crate::ops) fn op() -> BuiltIn {
    BuiltIn::new(
        Schema::builtin("relu", "input[...] -> out[...]")
            .describe("Negative elements become zero; NaN stays NaN.", "max(x, 0)")
            .holds(&[
                Property::PermutationEquivariant,
                Property::BatchInvariant,
                Property::Homogeneous { input: "input", degree: 1 },
            ])
            .bounded_by("0 + flush: every element is an input or zero")
            .keywords(&["activation", "rectifier", "clamp", "threshold"])
            .usual_bugs(&[
                "threshold other than zero",
                "tail elements not masked",
                "NaN becomes 0, as `fmax(x, 0)` makes of it",
            ]),
        expect,
    )
}

fn expect(call: &Call<'_>) -> Result<Vec<Expectation>, OpError> {
    let flush = call.units.flush;
    call.elementwise("input", |x| (if x.is_nan() || x > 0.0 { x } else { 0.0 }, flush))
}
