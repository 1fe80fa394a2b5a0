//! nll_loss: the mean negative log-likelihood of given log-probabilities.

use crate::case::Strategy;
use crate::ops::{Arithmetic, BuiltIn, Call, Expectation, OpError, Rounded};
use crate::schema::{Property, Scalar, Schema};

pub(in crate::ops) fn op() -> BuiltIn {
    let signature =
        "input[N,V] target:int64[N] in 0..V or ignore_index weight?[V] in non_negative ignore_index:int=-100 -> out[]";
    let schema = Schema::builtin("nll_loss", signature)
        .alias(&["negative_log_likelihood", "nll_loss_mean"])
        .reduces(&["N"])
        .at_least("V", 1)
        .describe(
            "Mean of -input[row,target], weighted by the target's class where there are weights (reduction mean: divided by the sum of the weights used); rows whose target is `ignore_index` count neither above nor below. NaN where nothing counts.",
            "-sum(weight[target]*input[row,target])/sum(weight[target]) over rows with target != ignore_index",
        )
        .choices("ignore_index", &[Scalar::Int(-100), Scalar::Int(-1), Scalar::Int(0)])
        .help("input", "log-probabilities")
        .help("target", "the class of each row, or `ignore_index`")
        .help("weight", "one for each class; 1 where absent")
        .help("ignore_index", "a target with this value is ignored; it may be a class too")
        .keywords(&["loss", "classification", "log-probabilities"])
        .bounded_by("u*((F + 1)*sum|w*x| + Q*|sum w*x| + F*|y|*sum w)/sum w")
        .holds(&[Property::Homogeneous { input: "input", degree: 1 }])
        .amplified_by(&[Strategy::Regular, Strategy::Shifted])
        .usual_bugs(&[
            "divided by the number of rows in place of the sum of weights",
            "ignored rows counted",
            "target off by one",
            "weight of the row in place of the class",
        ]);
    BuiltIn::new(schema, expect)
}

fn expect(call: &Call<'_>) -> Result<Vec<Expectation>, OpError> {
    let (input, target, width) = (call.input("input")?, call.input("target")?, call.size("V")?);
    let (weight, ignored) = (call.optional("weight"), call.int("ignore_index")? as f64);
    let arithmetic = Arithmetic::of(call);
    let (mut losses, mut weights) = (Vec::with_capacity(target.len()), Vec::with_capacity(target.len()));
    for (row, target) in input.chunks_exact(width.max(1)).zip(target) {
        if *target == ignored {
            continue;
        }
        let class = *target as usize;
        let Some(x) = row.get(class) else { return Err(OpError::MissingInput("target".to_string())) };
        let own = weight.and_then(|weight| weight.get(class)).map_or(Rounded::exact(1.0), |w| Rounded::exact(*w));
        let loss = Rounded::exact(-x);
        losses.push(if weight.is_some() { arithmetic.multiply(own, loss) } else { loss });
        weights.push(own);
    }
    let mut expectation = Expectation::with_capacity(1);
    if losses.is_empty() {
        expectation.push(f64::NAN, 0.0);
        return Ok(vec![expectation]);
    }
    let summation = call.summation(losses.len())?;
    let divisor = arithmetic.sum(weights, summation);
    // Without roundings in the sum of weights there is none in whether it is zero.
    let mean = arithmetic.divide(arithmetic.sum(losses, summation), divisor);
    if divisor.value != 0.0 && divisor.value < arithmetic.units.tiny && mean.value.is_finite() {
        expectation.push_undetermined(mean.value, "the weights add up to a subnormal number");
    } else {
        expectation.push_rounded(mean, "sum of |weight*input|");
    }
    Ok(vec![expectation])
}
