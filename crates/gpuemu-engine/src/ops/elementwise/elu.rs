//! elu: x, or alpha·(eˣ − 1) at and below zero.

use crate::case::Strategy;
use crate::ops::{BuiltIn, Call, Expectation, OpError};
use crate::schema::{Property, Scalar, Schema};

pub(in crate::ops) fn op() -> BuiltIn {
    BuiltIn::new(
        Schema::builtin("elu", "input[...] alpha:float=1.0 -> out[...]")
            .choices("alpha", &[Scalar::Float(1.0), Scalar::Float(1.0), Scalar::Float(0.5)])
            .describe(
                "Exponential linear unit; admits kernels that compute exp(x) - 1; NaN stays NaN.",
                "x if x > 0 else alpha*(exp(x) - 1)",
            )
            .help("alpha", "factor of exp(x) - 1; elements far below 0 tend to -alpha")
            .holds(&[Property::PermutationEquivariant, Property::BatchInvariant])
            .amplified_by(&[Strategy::Regular])
            .bounded_by(
                "flush where x > 0, else u*(|alpha|*exp(x)*(E + 2*|x|) + 3*|y|) + |alpha|*tiny + eta + flush: absolute \
                 near 0, where exp(x) - 1 cancels",
            )
            .keywords(&["activation", "exponential linear unit", "expm1", "celu", "selu"])
            .usual_bugs(&[
                "wrong alpha",
                "-1 missing",
                "exp of elements above 0, whose overflow reaches the result through 0*Inf",
            ]),
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
