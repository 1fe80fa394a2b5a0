//! swiglu: silu(gate)·up.

use crate::case::Strategy;
use crate::ops::elementwise::silu::{MINUS_INFINITY, silu};
use crate::ops::expectation::overflows;
use crate::ops::{BuiltIn, Call, ExcuseKind, Expectation, OpError};
use crate::schema::{Property, Schema};

pub(in crate::ops) fn op() -> BuiltIn {
    BuiltIn::new(
        Schema::builtin("swiglu", "gate[...,H] up[...,H] -> out[...,H]")
            .alias(&["silu_and_mul"])
            .describe(
                "Gated unit of most language models, its two halves as two tensors; at a gate of -Inf NaN or 0.",
                "silu(gate) * up",
            )
            .help("gate", "the half that goes through silu (the first half of packed weights, usually)")
            .help("up", "the half that is multiplied with it")
            .holds(&[
                Property::PermutationEquivariant,
                Property::BatchInvariant,
                Property::Homogeneous { input: "up", degree: 1 },
            ])
            .amplified_by(&[Strategy::Regular])
            .bounded_by("|up|*(delta of silu(gate) + eta_mid) + (2*u + u_mid)*|y| + eta + flush")
            .keywords(&["activation", "gated linear unit", "glu", "mlp", "llama"])
            .usual_bugs(&[
                "halves swapped",
                "activation on the wrong half, or on both",
                "gelu, or a scaled sigmoid, in place of silu",
            ]),
        expect,
    )
}

fn expect(call: &Call<'_>) -> Result<Vec<Expectation>, OpError> {
    let (gate, up) = (call.input("gate")?, call.input("up")?);
    let units = call.units;
    let mut expectation = Expectation::with_capacity(gate.len());
    for (gate, up) in gate.iter().zip(up) {
        if *gate == f64::NEG_INFINITY && !up.is_nan() {
            // 0 times an infinite `up` is NaN as well.
            let value = if up.is_infinite() { f64::NAN } else { 0.0 };
            expectation.push_overflow(value, 0.0, MINUS_INFINITY, "-Inf times 0");
            continue;
        }
        let (activated, delta) = silu(*gate, &units);
        let y = activated * up;
        let rounding = (2.0 * units.u + units.mid) * y.abs();
        let delta = up.abs() * (delta + units.mid_eta) + rounding + units.eta + units.flush;
        if overflows(activated.abs(), units.max.min(units.mid_max)) {
            let kind = ExcuseKind::Overflow { nan: true, infinite: true, value: None };
            expectation.push_overflow(y, delta, kind, "the rounded gate");
        } else if up.is_infinite() && activated.abs() <= units.tiny * (gate.abs() + 2.0) {
            // The gate may have been flushed to zero, and 0 times infinity is NaN.
            let kind = ExcuseKind::Overflow { nan: true, infinite: true, value: None };
            expectation.push_overflow(y, delta, kind, "a flushed gate times infinity");
        } else {
            expectation.push(y, delta);
        }
    }
    Ok(vec![expectation])
}
