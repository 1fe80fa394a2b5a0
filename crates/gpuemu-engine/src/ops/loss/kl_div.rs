//! kl_div: pointwise Kullback-Leibler divergence, and its sum over the batch size.

use crate::case::Strategy;
use crate::ops::loss::mean;
use crate::ops::{Arithmetic, BuiltIn, Call, ExcuseKind, Expectation, OpError, Rounded};
use crate::schema::{Property, Scalar, Schema};

const FORMULA: &str = "target*(log(target) - input), or exp(target)*(target - input) where log_target";

pub(in crate::ops) fn op() -> BuiltIn {
    let signature = "input[...] target[...] in non_negative unless log_target log_target:bool=false -> out[...]";
    let schema = Schema::builtin("kl_div", signature)
        .alias(&["kl_div_none", "kl_divergence"])
        .describe(
            "Pointwise Kullback-Leibler divergence (reduction none) of probabilities `target` from log-probabilities `input`; a target of 0 gives 0, and NaN or 0 where input is infinite.",
            FORMULA,
        )
        .holds(&[Property::PermutationEquivariant, Property::BatchInvariant])
        .bounded_by("u*(5*|t*log t| + |t*x| + |y|); log_target: u*(E + 2*|t| + 2)*|y| + u*e^t*|t - x|");
    BuiltIn::new(shared(schema), expect)
}

/// Summed, and divided by the number of rows.
pub(in crate::ops) fn batch_mean_op() -> BuiltIn {
    let signature = "input[N,V] target[N,V] in non_negative unless log_target log_target:bool=false -> out[]";
    let schema = Schema::builtin("kl_div_batchmean", signature)
        .alias(&["kl_div_loss", "liger_kl_div"])
        .reduces(&["N", "V"])
        .at_least("N", 1)
        .describe(
            "Kullback-Leibler divergence of probabilities `target` from log-probabilities `input`, summed and divided by the number of rows (reduction batchmean); a target of 0 gives 0, and NaN or 0 where input is infinite.",
            "sum(target*(log(target) - input))/N, or sum(exp(target)*(target - input))/N where log_target",
        )
        .bounded_by("the elements' bounds and u*F of their magnitudes, summed, over N, and u*Q*|y|")
        .usual_bugs(&["divided by the number of elements", "tail of a row dropped"]);
    BuiltIn::new(shared(schema), expect_batch_mean)
}

fn shared(schema: Schema) -> Schema {
    // Logarithms less often: e^target of large numbers overflows, and such an element tells little.
    let choices = [false, false, true].map(Scalar::Bool);
    schema
        .choices("log_target", &choices)
        .help("input", "log-probabilities of the model")
        .help("target", "probabilities, or log-probabilities where `log_target` is true")
        .help("log_target", "whether target holds logarithms")
        .keywords(&["loss", "distillation", "divergence", "relative entropy"])
        .amplified_by(&[Strategy::Regular, Strategy::Sparse])
        .usual_bugs(&["0*log(0) is NaN", "log_target ignored", "input exponentiated"])
}

fn expect(call: &Call<'_>) -> Result<Vec<Expectation>, OpError> {
    let (input, target) = (call.input("input")?, call.input("target")?);
    let (arithmetic, logarithms) = (Arithmetic::of(call), call.flag("log_target"));
    let mut expectation = Expectation::with_capacity(input.len());
    for (x, t) in input.iter().zip(target) {
        let (y, ambiguous) = divergence(&arithmetic, *x, *t, logarithms);
        if ambiguous {
            expectation.push_overflow(y.value, y.error, ANY, MEETING);
        } else {
            expectation.push_rounded(y, "e^target or a product");
        }
    }
    Ok(vec![expectation])
}

fn expect_batch_mean(call: &Call<'_>) -> Result<Vec<Expectation>, OpError> {
    let (input, target) = (call.input("input")?, call.input("target")?);
    let (arithmetic, logarithms) = (Arithmetic::of(call), call.flag("log_target"));
    let mut terms = Vec::with_capacity(input.len());
    let mut ambiguous = false;
    for (x, t) in input.iter().zip(target) {
        let (y, here) = divergence(&arithmetic, *x, *t, logarithms);
        ambiguous |= here;
        terms.push(y);
    }
    let mut expectation = mean(terms, call.size("V")?, call.size("N")?, "e^target, a product or their sum", call)?;
    if ambiguous {
        let y = expectation.values.first().copied().unwrap_or(f64::NAN);
        expectation = Expectation::with_capacity(1);
        expectation.push_undetermined(y, MEETING);
    }
    Ok(vec![expectation])
}

const MEETING: &str = "an infinity meets a zero or another one";

/// What products and differences of infinities and zeros give by one formula or another.
const ANY: ExcuseKind = ExcuseKind::Overflow { nan: true, infinite: true, value: Some(0.0) };

/// One element, and whether formulas that are equal for finite numbers differ.
fn divergence(arithmetic: &Arithmetic, x: f64, t: f64, logarithms: bool) -> (Rounded, bool) {
    let (given, target) = (Rounded::exact(x), Rounded::exact(t));
    let undefined = x.is_nan() || t.is_nan();
    let infinite = !undefined && (x.is_infinite() || t.is_infinite());
    if logarithms {
        let weight = arithmetic.exp(target);
        // e^t·t − e^t·x is as good while it does not cancel; kernels take the difference first.
        let difference = arithmetic.subtract(target, given);
        let y = arithmetic.intermediate(arithmetic.multiply(arithmetic.intermediate(weight), difference));
        // e^(−Inf)·Inf, or Inf − Inf: what comes of it depends on where exp underflows.
        let vanishing = infinite && weight.value < arithmetic.units.tiny;
        return (y, infinite && (y.value.is_nan() || vanishing));
    }
    if t == 0.0 {
        let value = if undefined { f64::NAN } else { 0.0 };
        return (Rounded::exact(value), infinite);
    }
    let own = arithmetic.multiply(target, arithmetic.log(target));
    let cross = arithmetic.multiply(target, given);
    let y = arithmetic.subtract(arithmetic.intermediate(own), arithmetic.intermediate(cross));
    // t·(log t − x) and t·log t − t·x are equal, but for infinities that meet.
    (y, t.is_infinite() && !undefined)
}
