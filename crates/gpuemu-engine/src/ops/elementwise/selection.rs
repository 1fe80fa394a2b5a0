//! where: one of two tensors, element by element.

use crate::case::Strategy;
use crate::ops::{BuiltIn, Call, Expectation, OpError};
use crate::schema::{Property, Schema};

pub(in crate::ops) fn op() -> BuiltIn {
    BuiltIn::new(
        Schema::builtin("where", "condition:bool[...] input[...] other[...] -> out[...]")
            .alias(&["select"])
            .describe(
                "Elements of input where the condition is true, of other where it is false; NaN and infinities of the one not taken leave no trace.",
                "input if condition else other",
            )
            .help("condition", "true takes input, false takes other")
            .help("input", "taken where the condition is true")
            .help("other", "taken where the condition is false")
            .keywords(&["select", "mask", "ternary", "conditional", "pointwise"])
            .bounded_by("0: the result is a copy")
            .holds(&[Property::PermutationEquivariant, Property::BatchInvariant])
            .amplified_by(&[Strategy::Special])
            .usual_bugs(&["branches swapped", "product with the mask, which lets NaN through", "condition read one off"]),
        expect,
    )
}

fn expect(call: &Call<'_>) -> Result<Vec<Expectation>, OpError> {
    let (condition, input, other) = (call.input("condition")?, call.input("input")?, call.input("other")?);
    let mut expectation = Expectation::with_capacity(input.len());
    for ((chosen, yes), no) in condition.iter().zip(input).zip(other) {
        expectation.push(if *chosen != 0.0 { *yes } else { *no }, call.units.flush);
    }
    Ok(vec![expectation])
}
