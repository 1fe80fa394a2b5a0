//! clamp between two numbers.

use crate::case::Strategy;
use crate::ops::{Arithmetic, BuiltIn, Call, Expectation, OpError};
use crate::schema::{Property, Scalar, Schema};

pub(in crate::ops) fn op() -> BuiltIn {
    BuiltIn::new(
        Schema::builtin("clamp", "input[...] min:float=-1.0 max:float=1.0 -> out[...]")
            .alias(&["clip", "hardtanh"])
            .choices("min", &[-1.0, 0.0, -0.1].map(Scalar::Float))
            .choices("max", &[1.0, 6.0, 0.3].map(Scalar::Float))
            .describe(
                "Elements limited to a range; NaN stays NaN, and where min is above max the result is max, as in PyTorch and NumPy.",
                "min(max(x, lower), upper)",
            )
            .help("min", "the smallest result")
            .help("max", "the largest result")
            .keywords(&["limit", "saturate", "relu6", "pointwise"])
            .bounded_by("0, and u*|min| or u*|max| where the result is one that float32 does not have")
            .holds(&[Property::PermutationEquivariant, Property::BatchInvariant])
            .amplified_by(&[Strategy::Regular, Strategy::Special])
            .usual_bugs(&["NaN becomes a bound", "one bound missing", "bounds swapped", "bounds rounded to an integer"]),
        expect,
    )
}

fn expect(call: &Call<'_>) -> Result<Vec<Expectation>, OpError> {
    let arithmetic = Arithmetic::of(call);
    let (lower, upper) = (arithmetic.constant(call.float("min")?), arithmetic.constant(call.float("max")?));
    let flush = call.units.flush;
    call.elementwise("input", |x| {
        if x > upper.value || lower.value > upper.value && !x.is_nan() {
            (upper.value, upper.error + flush)
        } else if x < lower.value {
            (lower.value, lower.error + flush)
        } else {
            (x, flush)
        }
    })
}
