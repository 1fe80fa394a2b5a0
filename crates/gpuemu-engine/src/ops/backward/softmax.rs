//! The backward of softmax and of log_softmax, from their saved outputs.

use super::NAN_TOO;
use crate::case::Strategy;
use crate::ops::rounded::ANY_OVERFLOW;
use crate::ops::{Arithmetic, BuiltIn, Call, Expectation, OpError, Overflow, Rounded};
use crate::schema::{Property, Schema};

fn described(schema: Schema) -> Schema {
    schema
        .reduces(&["H"])
        .keywords(&["gradient", "backward", "softmax", "attention", "vector-Jacobian product"])
        .help("grad_output", "upstream gradient")
        .holds(&[
            Property::PermutationEquivariant,
            Property::BatchInvariant,
            Property::Homogeneous { input: "grad_output", degree: 1 },
        ])
        .amplified_by(&[Strategy::Regular, Strategy::Shifted])
}

pub(in crate::ops) fn op() -> BuiltIn {
    let signature = "grad_output[...,H] output[...,H] in probability -> grad_input[...,H]";
    BuiltIn::new(
        described(Schema::builtin("softmax_backward", signature))
            .alias(&["softmax_backward_data", "grad_softmax"])
            .describe(
                "Gradient of softmax along the last dim from its output; rows of the output need not add up to 1.",
                "output*(grad_output - sum(grad_output*output))",
            )
            .help("output", "what the forward returned, taken as it is")
            .bounded_by("u*y*(F*T + 3*(|dy| + T)), with T = sum|dy*y|")
            .usual_bugs(&[
                "sum over the padded row",
                "sum of grad_output in place of grad_output*output",
                "sum missing",
                "accumulation in a narrow dtype",
            ]),
        expect,
    )
}

pub(in crate::ops) fn logarithm_op() -> BuiltIn {
    let signature = "grad_output[...,H] output[...,H] -> grad_input[...,H]";
    BuiltIn::new(
        described(Schema::builtin("log_softmax_backward", signature))
            .alias(&["log_softmax_backward_data", "grad_log_softmax"])
            .describe(
                "Gradient of log_softmax along the last dim from its output (log-probabilities); rows of the output \
                 need not be normalised.",
                "grad_output - exp(output)*sum(grad_output)",
            )
            .help("output", "what the forward returned: log-probabilities, taken as they are")
            .bounded_by("u*(e*(F*sum|dy| + (E + 2*|output| + 2)*|S|) + |dx|), with e = exp(output), S = sum(dy)")
            .usual_bugs(&[
                "exponential of the output forgotten",
                "sum over the padded row",
                "sum missing",
                "accumulation in a narrow dtype",
            ]),
        expect_logarithm,
    )
}

const PRODUCTS: &str = "sum of |grad_output*output|";

fn expect(call: &Call<'_>) -> Result<Vec<Expectation>, OpError> {
    let (gradient, output, width) = (call.input("grad_output")?, call.input("output")?, call.size("H")?);
    let (arithmetic, summation) = (Arithmetic::of(call), call.summation(width.max(1))?);
    let mut expectation = Expectation::with_capacity(gradient.len());
    for (gradient, output) in gradient.chunks_exact(width.max(1)).zip(output.chunks_exact(width.max(1))) {
        let products = gradient.iter().zip(output).map(|(dy, y)| product(&arithmetic, *dy, *y));
        let sum = arithmetic.sum(products, summation);
        for (dy, y) in gradient.iter().zip(output) {
            let exact = Rounded::exact(*y);
            let result = arithmetic.multiply(exact, arithmetic.subtract(Rounded::exact(*dy), sum));
            // y·dy − y·sum rounds its two products in place of the difference.
            let apart = y * (dy.abs() + sum.value.abs());
            let rearranged = result.widened(arithmetic.units.u * apart + 2.0 * arithmetic.units.eta);
            expectation.push_rounded(rearranged, PRODUCTS);
        }
    }
    Ok(vec![expectation])
}

fn product(arithmetic: &Arithmetic, left: f64, right: f64) -> Rounded {
    arithmetic.multiply(Rounded::exact(left), Rounded::exact(right))
}

fn expect_logarithm(call: &Call<'_>) -> Result<Vec<Expectation>, OpError> {
    let (gradient, output, width) = (call.input("grad_output")?, call.input("output")?, call.size("H")?);
    let (arithmetic, summation) = (Arithmetic::of(call), call.summation(width.max(1))?);
    let mut expectation = Expectation::with_capacity(gradient.len());
    for (gradient, output) in gradient.chunks_exact(width.max(1)).zip(output.chunks_exact(width.max(1))) {
        let sum = arithmetic.sum(gradient.iter().map(|dy| Rounded::exact(*dy)), summation);
        for (dy, y) in gradient.iter().zip(output) {
            let exponential = arithmetic.exp(Rounded::exact(*y));
            let part = arithmetic.multiply(exponential, sum);
            let result = arithmetic.subtract(Rounded::exact(*dy), part);
            if exponential.value.is_infinite() && !sum.value.is_nan() && !dy.is_nan() {
                // Infinity times a sum of which rounding may decide whether it is 0, and its sign.
                expectation.push_overflow(result.value, 0.0, ANY_OVERFLOW, "exp(output)");
                continue;
            }
            let flushed = sum.value.is_infinite() && exponential.value <= arithmetic.units.tiny;
            if flushed && sum.overflow == Overflow::None && !result.value.is_nan() {
                // A flushed exponential times infinity is NaN.
                expectation.push_overflow(result.value, 0.0, NAN_TOO, "a flushed exponential times an infinite sum");
            } else {
                expectation.push_rounded(result, "exp(output) or the sum of |grad_output|");
            }
        }
    }
    Ok(vec![expectation])
}
