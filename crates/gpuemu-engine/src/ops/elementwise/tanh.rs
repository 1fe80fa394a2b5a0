//! tanh.

use crate::case::Strategy;
use crate::ops::{BuiltIn, Call, Expectation, OpError};
use crate::schema::{Property, Schema, Units};

pub(in crate::ops) fn op() -> BuiltIn {
    BuiltIn::new(
        Schema::builtin("tanh", "input[...] -> out[...]")
            .describe("Hyperbolic tangent; admits kernels that compute 2*sigmoid(2x) - 1.", "tanh(x)")
            .holds(&[Property::PermutationEquivariant, Property::BatchInvariant])
            .amplified_by(&[Strategy::Regular])
            .bounded_by("u*((Q + 2)*(1 + |y|) + 1 + 0.5*(1 - y^2)*(E + 4*|x|)) + fast_tanh*|y| + tiny with fast_tanh = 2^-11 where \
                 declared: absolute near 0, where 2*sigmoid(2x) - 1 cancels")
            .keywords(&["activation", "hyperbolic tangent", "saturation"])
            .usual_bugs(&[
                "factor in the argument",
                "(e-1)/(e+1) that overflows to NaN",
                "2*sigmoid(x) - 1, without the 2 in the argument",
            ]),
        expect,
    )
}

fn expect(call: &Call<'_>) -> Result<Vec<Expectation>, OpError> {
    let units = call.units;
    call.elementwise("input", |x| {
        let y = libm::tanh(x);
        (y, units.u * tanh_condition(x, y, &units) + units.tiny)
    })
}

/// δtanh/u, without the underflow term.
pub(in crate::ops) fn tanh_condition(x: f64, y: f64, units: &Units) -> f64 {
    let slope = 1.0 - y * y;
    let spread = if slope == 0.0 { 0.0 } else { 0.5 * slope * (units.exp + 4.0 * x.abs()) };
    (units.division + 2.0) * (1.0 + y.abs()) + 1.0 + spread + units.fast_tanh * y.abs() / units.u
}
