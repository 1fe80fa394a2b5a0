//! mish: x·tanh(softplus(x)).

use crate::case::Strategy;
use crate::ops::elementwise::silu::MINUS_INFINITY;
use crate::ops::elementwise::softplus::softplus;
use crate::ops::elementwise::tanh::tanh_condition;
use crate::ops::{Arithmetic, BuiltIn, Call, Expectation, OpError};
use crate::schema::{Property, Schema};

pub(in crate::ops) fn op() -> BuiltIn {
    BuiltIn::new(
        Schema::builtin("mish", "input[...] -> out[...]")
            .describe(
                "Self-gated activation; at -Inf NaN or 0. Admits log(1 + exp(x)) for the softplus and 2*sigmoid(2s) - 1 for the tanh.",
                "x * tanh(log(1 + exp(x)))",
            )
            .keywords(&["activation", "softplus", "tanh", "pointwise"])
            .bounded_by("u*(|x|*((1 - t^2)*ds + dt) + 2*|y|) with t = tanh(s), ds and dt the errors of softplus and tanh: absolute")
            .holds(&[Property::PermutationEquivariant, Property::BatchInvariant])
            .amplified_by(&[Strategy::Regular])
            .usual_bugs(&["softplus dropped", "x dropped", "e^2x that overflows to NaN"]),
        expect,
    )
}

fn expect(call: &Call<'_>) -> Result<Vec<Expectation>, OpError> {
    let (input, units) = (call.input("input")?, Arithmetic::of(call).units);
    let unit = units.u + units.mid;
    let mut expectation = Expectation::with_capacity(input.len());
    for x in input {
        if *x == f64::NEG_INFINITY {
            expectation.push_overflow(0.0, 0.0, MINUS_INFINITY, "-Inf times 0");
            continue;
        }
        let (smooth, condition) = softplus(*x, &units);
        let t = libm::tanh(smooth);
        let y = x * t;
        let slope = 1.0 - t * t;
        let carried = if slope == 0.0 { 0.0 } else { slope * condition };
        let delta = unit * (x.abs() * (carried + tanh_condition(smooth, t, &units)) + 2.0 * y.abs());
        expectation.push(y, delta + (x.abs() + 2.0) * (2.0 * units.tiny + units.mid_eta));
    }
    Ok(vec![expectation])
}
