//! max along the last dim.

use crate::ops::{BuiltIn, Call, Expectation, OpError};
use crate::schema::{Property, Scalar, Schema};

pub(in crate::ops) fn op() -> BuiltIn {
    BuiltIn::new(
        Schema::builtin("max", "input[...,H] propagate_nan:bool=true -> out[...]")
            .reduces(&["H"])
            .at_least("H", 1)
            .alias(&["reduce_max"])
            .choices("propagate_nan", &[Scalar::Bool(true), Scalar::Bool(false)])
            .describe(
                "Largest element along the last dim; NaN wins, or is skipped where `propagate_nan` is false and the row has a number.",
                "max(x)",
            )
            .help(
                "propagate_nan",
                "whether a NaN is the largest element of its row, as in PyTorch and JAX, or is skipped, as in `fmax` \
                 and `tl.max`",
            )
            .holds(&[
                Property::PermutationEquivariant,
                Property::BatchInvariant,
                Property::Homogeneous { input: "input", degree: 1 },
            ])
            .bounded_by("0 + flush: the result is one of the inputs")
            .keywords(&["reduction", "maximum", "largest", "row max"])
            .usual_bugs(&[
                "starts from 0 in place of -Inf",
                "padding wins over negative rows",
                "starts from the most negative finite number, which beats a row of -Inf",
            ]),
        expect,
    )
}

fn expect(call: &Call<'_>) -> Result<Vec<Expectation>, OpError> {
    let (input, width) = (call.input("input")?, call.size("H")?);
    let propagate = call.flag("propagate_nan");
    let mut expectation = Expectation::with_capacity(call.batch_count());
    for row in input.chunks_exact(width.max(1)) {
        let poisoned = row.iter().any(|x| x.is_nan());
        // f64::max skips NaN; a row of nothing else stays NaN.
        let largest = row.iter().copied().fold(f64::NAN, f64::max);
        let y = if propagate && poisoned { f64::NAN } else { largest };
        expectation.push(y, call.units.flush);
    }
    Ok(vec![expectation])
}
