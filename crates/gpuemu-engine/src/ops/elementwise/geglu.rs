//! geglu: gelu(gate)·up.

use crate::case::Strategy;
use crate::ops::elementwise::gelu::{erf_form, tanh_form};
use crate::ops::elementwise::silu::MINUS_INFINITY;
use crate::ops::expectation::overflows;
use crate::ops::rounded::ANY_OVERFLOW;
use crate::ops::{Arithmetic, BuiltIn, Call, Expectation, OpError};
use crate::schema::{Property, Scalar, Schema};

pub(in crate::ops) fn op() -> BuiltIn {
    BuiltIn::new(
        Schema::builtin("geglu", "gate[...,H] up[...,H] approximate_tanh:bool=false -> out[...,H]")
            .alias(&["gelu_and_mul"])
            .choices("approximate_tanh", &[Scalar::Bool(false), Scalar::Bool(true)])
            .describe(
                "Gated unit with a gelu, in its erf form or its tanh form; at a gate of -Inf NaN or 0.",
                "gelu(gate) * up",
            )
            .help("gate", "the half that the gelu is applied to")
            .help("up", "the half that it multiplies")
            .help("approximate_tanh", "the tanh form of gelu (PyTorch's approximate='tanh') in place of the erf form")
            .keywords(&["gated linear unit", "gelu", "feed forward", "mlp", "activation"])
            .bounded_by("|up|*d + 2u*|y| with d the bound of gelu(gate)")
            .holds(&[
                Property::PermutationEquivariant,
                Property::BatchInvariant,
                Property::Homogeneous { input: "up", degree: 1 },
            ])
            .amplified_by(&[Strategy::Regular])
            .usual_bugs(&["halves swapped", "activation on the wrong half", "erf and tanh form mixed up"]),
        expect,
    )
}

fn expect(call: &Call<'_>) -> Result<Vec<Expectation>, OpError> {
    let (gate, up, tanh) = (call.input("gate")?, call.input("up")?, call.flag("approximate_tanh"));
    let units = Arithmetic::of(call).units;
    let mut expectation = Expectation::with_capacity(gate.len());
    for (gate, up) in gate.iter().zip(up) {
        if *gate == f64::NEG_INFINITY && !up.is_nan() {
            // 0 times an infinite `up` is NaN as well.
            let value = if up.is_infinite() { f64::NAN } else { 0.0 };
            expectation.push_overflow(value, 0.0, MINUS_INFINITY, "-Inf times 0");
            continue;
        }
        let (activated, condition) = if tanh { tanh_form(*gate, &units) } else { erf_form(*gate, &units) };
        let y = activated * up;
        let underflow = (gate.abs() + 1.0) * units.tiny;
        let rounding = (2.0 * units.u + units.mid) * y.abs();
        let lost = units.u * condition + underflow;
        // A subnormal `up` counts as zero, and its product with a large gate is not small.
        let flushed = if up.abs() < units.flush { y.abs() } else { 0.0 };
        let delta = up.abs() * (lost + units.mid_eta) + rounding + flushed + units.eta + units.flush;
        let unguarded = call.precision.fast_erf && gate.abs() > 0.5 * units.max;
        if unguarded {
            expectation.push_overflow(y, delta, ANY_OVERFLOW, "x*(1 + erf(x))");
        } else if overflows(activated.abs(), units.max.min(units.mid_max)) && activated.is_finite() {
            expectation.push_overflow(y, delta, ANY_OVERFLOW, "the rounded gate");
        } else if up.is_infinite() && activated.abs() <= lost {
            // The gate may be zero in the kernel, or of the other sign.
            expectation.push_overflow(y, delta, ANY_OVERFLOW, "a gate within its error of 0 times infinity");
        } else {
            expectation.push(y, delta);
        }
    }
    Ok(vec![expectation])
}
