//! binary_cross_entropy_with_logits: mean of log-likelihoods of independent yes-or-no answers.

use crate::case::Strategy;
use crate::ops::loss::mean;
use crate::ops::{Arithmetic, BuiltIn, Call, Expectation, OpError, Rounded};
use crate::schema::Schema;

pub(in crate::ops) fn op() -> BuiltIn {
    let signature = "input[...,H] target[...,H] in probability pos_weight?[H] in non_negative -> out[]";
    let schema = Schema::builtin("binary_cross_entropy_with_logits", signature)
        .alias(&["bce_with_logits", "sigmoid_cross_entropy"])
        .reduces(&["H"])
        .describe(
            "Mean over all elements (reduction mean) of the cross entropy of sigmoid(input) with `target`, the positive part weighted by `pos_weight`; computed without overflow for any finite logit. NaN where there is no element; NaN or infinite where a logit or weight is.",
            "mean((1 - t)*x + (1 + (pos_weight - 1)*t)*(log(1 + exp(-|x|)) + max(-x, 0)))",
        )
        .help("input", "logits")
        .help("target", "0 or 1, or between them")
        .help("pos_weight", "factor of the positive part, by column; 1 where absent")
        .keywords(&["loss", "logistic", "binary", "bce", "sigmoid"])
        .bounded_by("mean of u*(4*|x| + (E + 5 + |y|)*weights) and u*F of the elements, and u*Q*|y|")
        .amplified_by(&[Strategy::Regular, Strategy::Large])
        .usual_bugs(&[
            "log of a sigmoid that underflowed",
            "summed, not averaged",
            "pos_weight on the negative part too",
            "target and its complement swapped",
        ]);
    BuiltIn::new(schema, expect)
}

fn expect(call: &Call<'_>) -> Result<Vec<Expectation>, OpError> {
    let (input, target, width) = (call.input("input")?, call.input("target")?, call.size("H")?);
    let weight = call.optional("pos_weight");
    let arithmetic = Arithmetic::of(call);
    let mut terms = Vec::with_capacity(input.len());
    let mut infinite = false;
    for (index, (x, t)) in input.iter().zip(target).enumerate() {
        let column = index % width.max(1);
        let own = weight.and_then(|weight| weight.get(column)).copied();
        infinite |= x.is_infinite() || own.is_some_and(f64::is_infinite);
        terms.push(arithmetic.intermediate(element(&arithmetic, *x, *t, own)));
    }
    let poisoned = terms.iter().any(|term| term.value.is_nan());
    let count = terms.len();
    let mut expectation = mean(terms, width, count, "a product with pos_weight, or the sum", call)?;
    // (1 − t)·x and max(x, 0) − x·t are equal, but for infinities that meet zeros or each other.
    if infinite && (!poisoned || input.iter().chain(target).chain(weight.unwrap_or_default()).all(|x| !x.is_nan())) {
        let y = expectation.values.first().copied().unwrap_or(f64::NAN);
        expectation = Expectation::with_capacity(1);
        expectation.push_undetermined(y, "an infinite logit or weight meets a zero");
    }
    Ok(vec![expectation])
}

fn element(arithmetic: &Arithmetic, x: f64, t: f64, weight: Option<f64>) -> Rounded {
    let (logit, answer, one) = (Rounded::exact(x), Rounded::exact(t), Rounded::exact(1.0));
    let decayed = arithmetic.exp(Rounded::exact(-x.abs()));
    let logarithm = arithmetic.log(arithmetic.add(one, decayed));
    // log(1 + e) is as good as log1p(e); the exact value is log1p's.
    let logarithm = Rounded { value: libm::log1p(decayed.value), ..logarithm };
    let ramp = if x < 0.0 { Rounded::exact(-x) } else { Rounded::exact(0.0) };
    let mut negative = arithmetic.add(logarithm, ramp);
    if let Some(weight) = weight {
        let more = arithmetic.multiply(arithmetic.subtract(Rounded::exact(weight), one), answer);
        negative = arithmetic.multiply(arithmetic.add(more, one), negative);
    }
    let linear = arithmetic.multiply(arithmetic.subtract(one, answer), logit);
    // Sums of |x| in another order: max(x, 0) − x·t + log(1 + e^−|x|), or p·t·log σ(x) + (1 − t)·log σ(−x).
    let share = 3.0 * arithmetic.units.u * (x.abs() + logarithm.value) * (1.0 + weight.unwrap_or(0.0));
    arithmetic.add(linear, negative).widened(share)
}
