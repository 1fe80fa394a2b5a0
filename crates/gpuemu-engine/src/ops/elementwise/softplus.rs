//! softplus: log(1 + e^(beta·x))/beta, or x above a threshold.

use crate::case::Strategy;
use crate::ops::elementwise::sigmoid::sigmoid;
use crate::ops::elementwise::sums::power_of_two;
use crate::ops::{Arithmetic, BuiltIn, Call, ExcuseKind, Expectation, OpError};
use crate::schema::{Property, Scalar, Schema, Units};

pub(in crate::ops) fn op() -> BuiltIn {
    BuiltIn::new(
        Schema::builtin("softplus", "input[...] beta:float=1.0 threshold:float=20.0 -> out[...]")
            .choices("beta", &[1.0, 0.5, 2.0].map(Scalar::Float))
            .choices("threshold", &[20.0, 5.0].map(Scalar::Float))
            .describe(
                "Smooth relu; x itself where beta*x is above the threshold. Admits kernels that compute log(1 + exp(z)) rather than log1p.",
                "x if beta*x > threshold else log(1 + exp(beta*x))/beta",
            )
            .help("beta", "sharpness: multiplies x, divides the result")
            .help("threshold", "where beta*x is above this (not at it), the result is x")
            .keywords(&["activation", "log1p", "smooth relu", "pointwise"])
            .bounded_by("u*(s*(5 + 4*|z|) + 1 + 6*L)/beta + 5u*|y| with z = beta*x, s = sigmoid(z), L = log(1 + exp(z)): absolute")
            .holds(&[Property::PermutationEquivariant, Property::BatchInvariant])
            .amplified_by(&[Strategy::Regular])
            .usual_bugs(&["not divided by beta", "threshold compared with x", "exp overflows without the threshold"]),
        expect,
    )
}

fn expect(call: &Call<'_>) -> Result<Vec<Expectation>, OpError> {
    let (input, beta, threshold) = (call.input("input")?, call.float("beta")?, call.float("threshold")?);
    let units = Arithmetic::of(call).units;
    let unit = units.u + units.mid;
    let mut expectation = Expectation::with_capacity(input.len());
    // A power of two leaves beta*x exact, and the comparison with it.
    let blurred = if power_of_two(beta) { units.mid } else { 2.0 * (units.u + units.mid) };
    for x in input {
        let z = beta * x;
        let near = z.is_finite() && (z - threshold).abs() <= blurred * z.abs() && blurred > 0.0;
        if z > threshold && !near {
            expectation.push(*x, units.flush);
            continue;
        }
        let (smooth, condition) = softplus(z, &units);
        let y = smooth / beta;
        let delta = unit * (condition / beta.abs() + units.division * y.abs())
            + (2.0 * units.tiny + units.mid_eta) / beta.abs()
            + units.eta
            + units.flush;
        if near {
            let image = ExcuseKind::Overflow { nan: false, infinite: false, value: Some(*x) };
            expectation.push_overflow(y, delta, image, "beta*x at the threshold");
        } else if libm::exp(z) > Expectation::OVERFLOW_SHARE * units.max {
            let image = ExcuseKind::Overflow { nan: false, infinite: true, value: None };
            expectation.push_overflow(y, delta, image, "exp(beta*x)");
        } else {
            expectation.push(y, delta);
        }
    }
    Ok(vec![expectation])
}

/// log(1 + e^z) without overflow, and its error in units of u where z itself has two roundings.
pub(in crate::ops) fn softplus(z: f64, units: &Units) -> (f64, f64) {
    let smooth = z.max(0.0) + libm::log1p(libm::exp(-z.abs()));
    let smooth = if z.is_nan() { z } else { smooth };
    let slope = sigmoid(z);
    let argument = if slope == 0.0 || !z.is_finite() { 0.0 } else { slope * (units.exp + 4.0 * z.abs()) };
    (smooth, argument + 1.0 + 6.0 * smooth.abs())
}
