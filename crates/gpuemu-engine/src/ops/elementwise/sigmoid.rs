//! sigmoid: 1 / (1 + e⁻ˣ).

use crate::case::Strategy;
use crate::ops::{BuiltIn, Call, Expectation, OpError};
use crate::schema::{Property, Schema, Units};

pub(in crate::ops) fn op() -> BuiltIn {
    BuiltIn::new(
        Schema::builtin("sigmoid", "input[...] -> out[...]")
            .alias(&["logistic", "expit"])
            .describe("Logistic function; 0 at -Inf and 1 at Inf, whichever way it is computed.", "1/(1 + exp(-x))")
            .holds(&[Property::PermutationEquivariant, Property::BatchInvariant])
            .amplified_by(&[Strategy::Regular])
            .bounded_by("u*y*(Q + 2 + (1 - y)*(E + 2*|x|)) + 2*tiny")
            .keywords(&["activation", "logistic function", "gate", "probability"])
            .usual_bugs(&[
                "sign of the exponent",
                "argument scaled",
                "exp(x)/(1 + exp(x)), which is Inf/Inf for large x",
            ]),
        expect,
    )
}

fn expect(call: &Call<'_>) -> Result<Vec<Expectation>, OpError> {
    let units = call.units;
    call.elementwise("input", |x| {
        let y = sigmoid(x);
        (y, units.u * sigmoid_condition(x, y, &units) + 2.0 * units.tiny)
    })
}

/// The logistic function without overflow on either side.
pub(in crate::ops) fn sigmoid(x: f64) -> f64 {
    if x >= 0.0 {
        return 1.0 / (1.0 + libm::exp(-x));
    }
    let e = libm::exp(x);
    e / (1.0 + e)
}

/// δσ/u, without the underflow term.
pub(in crate::ops) fn sigmoid_condition(x: f64, y: f64, units: &Units) -> f64 {
    // 1 − y loses its digits for large x; σ(−x) does not. Where it is 0 the argument may be infinite.
    let complement = sigmoid(-x);
    let spread = if complement == 0.0 || y == 0.0 { 0.0 } else { complement * (units.exp + 2.0 * x.abs()) };
    y * (units.division + 2.0 + spread)
}
