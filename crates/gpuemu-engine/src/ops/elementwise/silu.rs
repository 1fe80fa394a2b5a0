//! silu (swish): x·σ(x).

use crate::case::Strategy;
use crate::ops::elementwise::sigmoid::{sigmoid, sigmoid_condition};
use crate::ops::{BuiltIn, Call, ExcuseKind, Expectation, OpError};
use crate::schema::{Property, Schema, Units};

pub(in crate::ops) fn op() -> BuiltIn {
    BuiltIn::new(
        Schema::builtin("silu", "input[...] -> out[...]")
            .alias(&["swish"])
            .describe("Sigmoid-weighted linear unit; at -Inf NaN or 0.", "x * sigmoid(x)")
            .holds(&[Property::PermutationEquivariant, Property::BatchInvariant])
            .amplified_by(&[Strategy::Regular])
            .bounded_by("u*(|x|*s*(Q + 2 + (1 - s)*(E + 2*|x|)) + |y|) + (|x| + 2)*tiny with s = sigmoid(x)")
            .keywords(&["activation", "sigmoid linear unit", "gate", "mlp"])
            .usual_bugs(&[
                "argument of the sigmoid scaled",
                "sigmoid missing, or not multiplied with x",
                "x/(1 + exp(-x)) in a narrow dtype, whose exponential overflows",
            ]),
        expect,
    )
}

fn expect(call: &Call<'_>) -> Result<Vec<Expectation>, OpError> {
    let input = call.input("input")?;
    let mut expectation = Expectation::with_capacity(input.len());
    for x in input {
        let (y, delta) = silu(*x, &call.units);
        if *x == f64::NEG_INFINITY {
            expectation.push_overflow(0.0, 0.0, MINUS_INFINITY, "-Inf times 0");
        } else {
            expectation.push(y, delta);
        }
    }
    Ok(vec![expectation])
}

/// −Inf · 0 is NaN; the limit is 0. Correct kernels give either.
pub(in crate::ops) const MINUS_INFINITY: ExcuseKind =
    ExcuseKind::Overflow { nan: true, infinite: false, value: Some(0.0) };

/// y and δ of x·σ(x) for x above −Inf.
pub(in crate::ops) fn silu(x: f64, units: &Units) -> (f64, f64) {
    let gate = sigmoid(x);
    let y = x * gate;
    let condition = x.abs() * sigmoid_condition(x, gate, units) + y.abs();
    (y, units.u * condition + (x.abs() + 2.0) * units.tiny)
}
