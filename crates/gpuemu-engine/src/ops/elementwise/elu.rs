//! elu: x, or alpha·(eˣ − 1) at and below zero.

use crate::case::Strategy;
use crate::ops::{BuiltIn, Call, Expectation, OpError};
use crate::schema::{Property, Schema};

/// The op.
pub(in crate::ops) fn op() -> BuiltIn {
    BuiltIn::new(
        Schema::builtin("elu", "input[...] alpha:float=1.0 -> out[...]")
            .describe(
                "Exponential linear unit; admits kernels that compute exp(x) - 1.",
                "x if x > 0 else alpha*(exp(x) - 1)",
            )
            .holds(&[Property::PermutationEquivariant, Property::BatchInvariant])
            .amplified_by(&[Strategy::Regular])
            .usual_bugs(&["wrong alpha", "-1 missing"]),
        expect,
    )
}

fn expect(call: &Call<'_>) -> Result<Vec<Expectation>, OpError> {
    let alpha = call.float("alpha")?;
    let units = call.units;
    call.elementwise("input", |x| {
        if x.is_nan() || x > 0.0 {
            return (x, units.flush);
        }
        let y = alpha * libm::expm1(x);
        let e = libm::exp(x);
        let argument = if e == 0.0 { 0.0 } else { 2.0 * x.abs() };
        let delta = alpha.abs() * e * (units.exp + argument) + 3.0 * y.abs();
        (y, units.u * delta + alpha.abs() * units.tiny + units.eta + units.flush)
    })
}
