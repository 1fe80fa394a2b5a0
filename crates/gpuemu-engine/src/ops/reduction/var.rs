//! var along the last dim.

use crate::case::Strategy;
use crate::ops::normalisation::layernorm::Moments;
use crate::ops::rounded::ANY_OVERFLOW;
use crate::ops::{BuiltIn, Call, Expectation, OpError};
use crate::schema::{Property, Scalar, Schema};

pub(in crate::ops) fn op() -> BuiltIn {
    BuiltIn::new(
        Schema::builtin("var", "input[...,H] correction:int=1 -> out[...]")
            .alias(&["variance"])
            .reduces(&["H"])
            .at_least("H", 1)
            .choices("correction", &[Scalar::Int(1), Scalar::Int(0)])
            .describe(
                "Variance along the last dim: squared deviations from the mean, divided by H - correction; 0/0, that is NaN, for one element with a correction of 1, as in PyTorch.",
                "sum((x - mean(x))^2)/max(0, H - correction)",
            )
            .help("correction", "what is subtracted from the number of elements: 1 is the unbiased variance, 0 the biased one")
            .keywords(&["variance", "standard deviation", "moment", "unbiased", "bessel", "welford"])
            .bounded_by("two-pass u*(F + 8)*v + dm^2 with dm = u*(F*E|x| + 2*|m|); Welford adds u*F*sqrt(v*E[x^2]), one-pass u*(F + 3)*(E[x^2] + 2*|m|*E|x|)")
            .holds(&[
                Property::PermutationEquivariant,
                Property::BatchInvariant,
                Property::ShiftInvariant { input: "input" },
                Property::Homogeneous { input: "input", degree: 2 },
            ])
            .amplified_by(&[Strategy::Shifted, Strategy::Regular])
            .usual_bugs(&[
                "biased in place of unbiased",
                "padding enters the deviations",
                "one-pass form that cancels",
                "mean over the padded width",
            ]),
        expect,
    )
}

fn expect(call: &Call<'_>) -> Result<Vec<Expectation>, OpError> {
    let (input, width, correction) = (call.input("input")?, call.size("H")?, call.int("correction")?);
    let units = call.units;
    let count = width as f64;
    let divisor = (count - correction as f64).max(0.0);
    let mut expectation = Expectation::with_capacity(call.batch_count());
    for row in input.chunks_exact(width.max(1)) {
        let moments = Moments::of(row, None, 0.0, call)?;
        let growth = count / divisor;
        let y = if divisor > 0.0 { moments.variance * growth } else { moments.variance * count / divisor };
        let delta = moments.variance_error * growth + units.u * (units.division - 1.0) * y.abs() + units.eta;
        if moments.overflow {
            expectation.push_overflow(y, delta, ANY_OVERFLOW, "sum of |x|, of squares or of squared deviations");
        } else {
            expectation.push(y, delta);
        }
    }
    Ok(vec![expectation])
}
