//! Losses of a difference: mse_loss, smooth_l1_loss and huber_loss.

use crate::case::Strategy;
use crate::ops::loss::mean;
use crate::ops::{Arithmetic, BuiltIn, Call, Expectation, OpError, Rounded};
use crate::schema::{Property, Scalar, Schema};

const OVERFLOWING: &str = "a square, or the sum of them";

pub(in crate::ops) fn mse_loss() -> BuiltIn {
    let schema = Schema::builtin("mse_loss", "input[...,H] target[...,H] -> out[]")
        .alias(&["mean_squared_error", "l2_loss"])
        .describe(
            "Mean of the squared differences over all elements (reduction mean); NaN where there is none.",
            "mean((input - target)^2)",
        )
        .usual_bugs(&["half of the square", "square of the mean"]);
    BuiltIn::new(averaged(schema), expect_mse)
}

/// Squares, element by element.
pub(in crate::ops) fn mse_loss_none() -> BuiltIn {
    let schema = Schema::builtin("mse_loss_none", "input[...] target[...] -> out[...]")
        .alias(&["squared_difference"])
        .describe("Squared difference of each element (reduction none).", "(input - target)^2")
        .keywords(&["loss", "regression", "squared error"])
        .bounded_by("u*3*y")
        .holds(&[Property::PermutationEquivariant, Property::BatchInvariant])
        .amplified_by(&[Strategy::Regular, Strategy::Shifted])
        .usual_bugs(&["half of the square", "absolute value in place of the square", "x*x - t*t"]);
    BuiltIn::new(schema, |call| {
        let arithmetic = Arithmetic::of(call);
        let terms = elements(call, |difference| squared(&arithmetic, difference))?;
        let mut expectation = Expectation::with_capacity(terms.len());
        terms.into_iter().for_each(|term| expectation.push_rounded(term, "the difference"));
        Ok(vec![expectation])
    })
}

/// Squares near zero, absolute values beyond `beta`.
pub(in crate::ops) fn smooth_l1_loss() -> BuiltIn {
    let schema = Schema::builtin("smooth_l1_loss", "input[...,H] target[...,H] beta:float=1.0 -> out[]")
        .describe(
            "Mean over all elements (reduction mean) of the difference's square over 2*beta where it is below beta, else of its absolute value less beta/2; NaN where there is none.",
            "d = |input - target|; mean(d < beta ? d^2/(2*beta) : d - beta/2)",
        )
        .choices("beta", &[Scalar::Float(1.0), Scalar::Float(0.5), Scalar::Float(4.0), Scalar::Float(0.0)])
        .help("beta", "where the square ends; 0 leaves the absolute value alone")
        .usual_bugs(&["the square not divided by beta", "beta taken to be 1"]);
    BuiltIn::new(averaged(schema), expect_smooth_l1)
}

/// Squares near zero, straight lines beyond `delta`.
pub(in crate::ops) fn huber_loss() -> BuiltIn {
    let schema = Schema::builtin("huber_loss", "input[...,H] target[...,H] delta:float=1.0 -> out[]")
        .describe(
            "Mean over all elements (reduction mean) of half the difference's square where it is at most delta, else of delta*(its absolute value less delta/2); NaN where there is none.",
            "d = |input - target|; mean(d <= delta ? d^2/2 : delta*(d - delta/2))",
        )
        .choices("delta", &[Scalar::Float(1.0), Scalar::Float(0.5), Scalar::Float(4.0)])
        .help("delta", "where the square ends, above 0")
        .usual_bugs(&["the straight part not multiplied by delta", "delta taken to be 1"]);
    BuiltIn::new(averaged(schema), expect_huber)
}

fn averaged(schema: Schema) -> Schema {
    schema
        .reduces(&["H"])
        .keywords(&["loss", "regression", "squared error", "robust"])
        .bounded_by("the elements' bounds (a few u of each), u*F of their sum, over their number, and u*Q*y")
        .amplified_by(&[Strategy::Regular, Strategy::Shifted])
        .usual_bugs(&["summed, not averaged", "tail elements dropped", "divided by the width alone"])
}

fn elements(call: &Call<'_>, loss: impl Fn(Rounded) -> Rounded) -> Result<Vec<Rounded>, OpError> {
    let arithmetic = Arithmetic::of(call);
    let pairs = call.input("input")?.iter().zip(call.input("target")?);
    let difference = |(x, t): (&f64, &f64)| arithmetic.subtract(Rounded::exact(*x), Rounded::exact(*t));
    Ok(pairs.map(|pair| loss(arithmetic.intermediate(difference(pair)))).collect())
}

fn average(call: &Call<'_>, loss: impl Fn(Rounded) -> Rounded) -> Result<Vec<Expectation>, OpError> {
    let arithmetic = Arithmetic::of(call);
    let terms = elements(call, |difference| arithmetic.intermediate(loss(difference)))?;
    let count = terms.len();
    Ok(vec![mean(terms, call.size("H")?, count, OVERFLOWING, call)?])
}

fn squared(arithmetic: &Arithmetic, difference: Rounded) -> Rounded {
    arithmetic.multiply(difference, difference)
}

fn expect_mse(call: &Call<'_>) -> Result<Vec<Expectation>, OpError> {
    let arithmetic = Arithmetic::of(call);
    average(call, |difference| squared(&arithmetic, difference))
}

fn expect_smooth_l1(call: &Call<'_>) -> Result<Vec<Expectation>, OpError> {
    let (arithmetic, beta) = (Arithmetic::of(call), call.float("beta")?);
    let half = Rounded::exact(0.5);
    average(call, |difference| {
        let distance = difference.magnitude();
        let straight = arithmetic.subtract(distance, arithmetic.constant(0.5 * beta));
        if distance.value.is_nan() {
            return distance;
        }
        if beta == 0.0 {
            return distance;
        }
        let curve = arithmetic.multiply(half, squared(&arithmetic, distance));
        joined(distance, beta, arithmetic.divide(curve, arithmetic.constant(beta)), straight)
    })
}

fn expect_huber(call: &Call<'_>) -> Result<Vec<Expectation>, OpError> {
    let (arithmetic, delta) = (Arithmetic::of(call), call.float("delta")?);
    let half = Rounded::exact(0.5);
    average(call, |difference| {
        let distance = difference.magnitude();
        if distance.value.is_nan() {
            return distance;
        }
        let curve = arithmetic.multiply(half, squared(&arithmetic, distance));
        let line = arithmetic.subtract(distance, arithmetic.constant(0.5 * delta));
        joined(distance, delta, curve, arithmetic.multiply(arithmetic.constant(delta), line))
    })
}

/// The curve up to a distance, the straight line beyond. Both have the same value and slope where they meet, so that a
/// kernel on the other side of it is off by no more than that side's own error.
fn joined(distance: Rounded, border: f64, curve: Rounded, line: Rounded) -> Rounded {
    let own = if distance.value < border { curve } else { line };
    let near = (distance.value - border).abs() <= 4.0 * (distance.error + f64::EPSILON * border);
    if near { Rounded { error: curve.error.max(line.error), ..own } } else { own }
}
