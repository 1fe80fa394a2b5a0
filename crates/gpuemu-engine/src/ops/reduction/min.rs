//! min along the last dim.

use crate::case::Strategy;
use crate::ops::{BuiltIn, Call, Expectation, OpError};
use crate::schema::{Property, Scalar, Schema};

pub(in crate::ops) fn op() -> BuiltIn {
    BuiltIn::new(
        Schema::builtin("min", "input[...,H] propagate_nan:bool=true -> out[...]")
            .alias(&["amin"])
            .reduces(&["H"])
            .at_least("H", 1)
            .choices("propagate_nan", &[Scalar::Bool(true), Scalar::Bool(false)])
            .describe(
                "Smallest element along the last dim; NaN wins, or is skipped where `propagate_nan` is false and the row has a number.",
                "min(x)",
            )
            .help("propagate_nan", "a NaN in a row makes its result NaN, as in PyTorch and NumPy; false skips it, as fmin does")
            .keywords(&["minimum", "smallest", "extreme", "amin", "nanmin"])
            .bounded_by("0: the result is an element")
            .holds(&[
                Property::PermutationEquivariant,
                Property::BatchInvariant,
                Property::Homogeneous { input: "input", degree: 1 },
            ])
            .amplified_by(&[Strategy::Shifted, Strategy::Special])
            .usual_bugs(&["starts from 0 in place of +Inf", "padding wins over positive rows", "tail elements dropped"]),
        expect,
    )
}

fn expect(call: &Call<'_>) -> Result<Vec<Expectation>, OpError> {
    let (input, width) = (call.input("input")?, call.size("H")?);
    let propagate = call.flag("propagate_nan");
    let mut expectation = Expectation::with_capacity(call.batch_count());
    for row in input.chunks_exact(width.max(1)) {
        let poisoned = propagate && row.iter().any(|x| x.is_nan());
        // f64::min skips NaN; a row of nothing else stays NaN.
        let smallest = row.iter().copied().fold(f64::NAN, f64::min);
        expectation.push(if poisoned { f64::NAN } else { smallest }, call.units.flush);
    }
    Ok(vec![expectation])
}
