//! hardswish: x·relu6(x + 3)/6.

use crate::case::Strategy;
use crate::ops::elementwise::silu::MINUS_INFINITY;
use crate::ops::expectation::overflows;
use crate::ops::{Arithmetic, BuiltIn, Call, ExcuseKind, Expectation, OpError};
use crate::schema::{Property, Schema};

pub(in crate::ops) fn op() -> BuiltIn {
    BuiltIn::new(
        Schema::builtin("hardswish", "input[...] -> out[...]")
            .alias(&["hard_swish", "hardsilu"])
            .describe(
                "Piecewise approximation of silu: 0 up to -3, x from 3 on, x*(x + 3)/6 between; at -Inf NaN or 0.",
                "x * min(max(x + 3, 0), 6) / 6",
            )
            .keywords(&["activation", "relu6", "mobile", "pointwise"])
            .bounded_by("u*|y|*(5 + 2): the sum, the product and the quotient")
            .holds(&[Property::PermutationEquivariant, Property::BatchInvariant])
            .amplified_by(&[Strategy::Regular])
            .usual_bugs(&["upper limit missing", "not divided by 6", "hardsigmoid without the factor x"]),
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
        let y = if *x <= -3.0 {
            0.0
        } else if *x >= 3.0 {
            *x
        } else {
            x * (x + 3.0) / 6.0
        };
        let underflow = 6.0 * (units.eta + units.flush + units.mid_eta);
        // x + 3 cancels where an intermediate dtype has no digits left of it.
        let sum = if y == 0.0 || *x >= 3.0 { 0.0 } else { units.mid * x.abs() };
        let delta = unit * (units.division + 2.0) * y.abs() + sum + underflow;
        if x.is_finite() && *x > 0.0 && overflows(6.0 * x, units.max.min(units.mid_max)) {
            let image = ExcuseKind::Overflow { nan: false, infinite: true, value: None };
            expectation.push_overflow(y, delta, image, "6*x");
        } else {
            expectation.push(y, delta);
        }
    }
    Ok(vec![expectation])
}
