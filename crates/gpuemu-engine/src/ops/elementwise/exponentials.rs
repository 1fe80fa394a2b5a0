//! exp and log.

use crate::case::Strategy;
use crate::ops::{Arithmetic, BuiltIn, Call, ExcuseKind, Expectation, OpError};
use crate::schema::{Property, Schema};

/// eˣ.
pub(in crate::ops) fn exp_op() -> BuiltIn {
    BuiltIn::new(
        Schema::builtin("exp", "input[...] -> out[...]")
            .describe(
                "Exponential function; 0 at -Inf. Admits exp2(x*log2(e)) and results below the normal range flushed to 0.",
                "exp(x)",
            )
            .keywords(&["exponential", "exp2", "pointwise"])
            .bounded_by("u*|y|*(5 + 2*|x|) + 2^-126: exp within 2 ulp of a rounded argument")
            .holds(&[Property::PermutationEquivariant, Property::BatchInvariant])
            .amplified_by(&[Strategy::Regular])
            .usual_bugs(&["base 2 in place of e", "argument clamped", "tail elements not masked"]),
        expect_exp,
    )
}

fn expect_exp(call: &Call<'_>) -> Result<Vec<Expectation>, OpError> {
    let units = Arithmetic::of(call).units;
    call.elementwise("input", |x| {
        let y = libm::exp(x);
        let relative = if y == 0.0 { 0.0 } else { units.u * (units.exp + 2.0 * x.abs()) };
        (y, relative * y + units.tiny)
    })
}

pub(in crate::ops) fn log_op() -> BuiltIn {
    BuiltIn::new(
        Schema::builtin("log", "input[...] -> out[...]")
            .alias(&["ln"])
            .describe(
                "Natural logarithm; NaN below 0, -Inf at 0 and -0, +Inf at +Inf. A subnormal x may count as 0. Admits log2(x)*ln(2) with an accurate log2, not lg2.approx, whose error near 1 is absolute.",
                "ln(x)",
            )
            .keywords(&["logarithm", "log2", "pointwise"])
            .bounded_by("4u*|y|")
            .holds(&[Property::PermutationEquivariant, Property::BatchInvariant])
            .amplified_by(&[Strategy::Regular])
            .usual_bugs(&["base 2 or 10 in place of e", "clamped away from 0", "log of |x|", "eps added to x"]),
        expect_log,
    )
}

/// What a function of a number flushed to 0 is, where that is an infinity.
pub(in crate::ops) const OF_ZERO_INFINITE: ExcuseKind =
    ExcuseKind::Overflow { nan: false, infinite: true, value: None };

/// The name of that.
pub(in crate::ops) const FLUSHED_INPUT: &str = "a subnormal input that may be flushed";

fn expect_log(call: &Call<'_>) -> Result<Vec<Expectation>, OpError> {
    let (input, units) = (call.input("input")?, Arithmetic::of(call).units);
    let mut expectation = Expectation::with_capacity(input.len());
    for x in input {
        let y = libm::log(*x);
        let delta = 4.0 * units.u * y.abs() + units.eta + units.flush;
        if *x != 0.0 && x.abs() < units.tiny {
            expectation.push_overflow(y, delta, OF_ZERO_INFINITE, FLUSHED_INPUT);
        } else {
            expectation.push(y, delta);
        }
    }
    Ok(vec![expectation])
}
