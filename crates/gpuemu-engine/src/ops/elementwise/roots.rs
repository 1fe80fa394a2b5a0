//! sqrt and rsqrt.

use crate::case::Strategy;
use crate::ops::elementwise::exponentials::{FLUSHED_INPUT, OF_ZERO_INFINITE};
use crate::ops::{Arithmetic, BuiltIn, Call, ExcuseKind, Expectation, OpError};
use crate::schema::{Property, Schema};

/// √x.
pub(in crate::ops) fn root_op() -> BuiltIn {
    BuiltIn::new(
        Schema::builtin("sqrt", "input[...] -> out[...]")
            .alias(&["square_root"])
            .describe("Square root; NaN below 0, 0 at 0, +Inf at +Inf. A subnormal x may count as 0.", "sqrt(x)")
            .keywords(&["root", "pointwise"])
            .bounded_by("4u*|y|: sqrt.approx, or x*rsqrt(x)")
            .holds(&[Property::PermutationEquivariant, Property::BatchInvariant])
            .amplified_by(&[Strategy::Regular])
            .usual_bugs(&["x*rsqrt(x) that is NaN at 0", "root of |x|", "eps added under the root"]),
        |call| {
            let flushed = ExcuseKind::Overflow { nan: false, infinite: false, value: Some(0.0) };
            expect(call, flushed, |x, rsqrt, _| (x.sqrt(), rsqrt))
        },
    )
}

/// 1/√x.
pub(in crate::ops) fn inverse_root_op() -> BuiltIn {
    BuiltIn::new(
        Schema::builtin("rsqrt", "input[...] -> out[...]")
            .alias(&["inverse_sqrt"])
            .describe(
                "Reciprocal of the square root; NaN below 0, an infinity at 0, 0 at +Inf. A subnormal x may count as 0.",
                "1/sqrt(x)",
            )
            .keywords(&["root", "inverse", "reciprocal", "pointwise"])
            .bounded_by("7u*|y|: rsqrt.approx, or a fast division by a root within 1 ulp")
            .holds(&[Property::PermutationEquivariant, Property::BatchInvariant])
            .amplified_by(&[Strategy::Regular])
            .usual_bugs(&["eps added under the root", "root not inverted", "Newton step missing", "zero at 0"]),
        |call| expect(call, OF_ZERO_INFINITE, |x, rsqrt, division| (1.0 / x.sqrt(), rsqrt.max(division + 2.0))),
    )
}

/// `formula` gives y and the relative error in units of u from those of rsqrt and of a division.
fn expect(
    call: &Call<'_>,
    flushed: ExcuseKind,
    formula: impl Fn(f64, f64, f64) -> (f64, f64),
) -> Result<Vec<Expectation>, OpError> {
    let (input, units) = (call.input("input")?, Arithmetic::of(call).units);
    let mut expectation = Expectation::with_capacity(input.len());
    for x in input {
        let (y, roundings) = formula(*x, units.rsqrt, units.division);
        let delta = roundings * units.u * y.abs() + units.eta + units.flush;
        if *x != 0.0 && x.abs() < units.tiny {
            expectation.push_overflow(y, delta, flushed, FLUSHED_INPUT);
        } else {
            expectation.push(y, delta);
        }
    }
    Ok(vec![expectation])
}
