//! fused_linear_cross_entropy: the last linear layer and the mean cross entropy of its logits.

use crate::case::Strategy;
use crate::ops::call::all_integers;
use crate::ops::expectation::overflows;
use crate::ops::linear::tiles::products;
use crate::ops::loss::cross_entropy::smoothed;
use crate::ops::loss::row_loss::{RowLoss, RowLosses, mean_of};
use crate::ops::{BuiltIn, Call, Expectation, OpError, Overflow, Rounded};
use crate::schema::Schema;

pub(in crate::ops) fn op() -> BuiltIn {
    let signature = "input[N,H] weight[V,H] bias?[V] target:int64[N] in 0..V or ignore_index label_smoothing:float=0.0 ignore_index:int=-100 -> out[]";
    let schema = Schema::builtin("fused_linear_cross_entropy", signature)
        .alias(&["linear_cross_entropy", "liger_fused_linear_cross_entropy", "cut_cross_entropy"])
        .reduces(&["H", "V"])
        .at_least("H", 1)
        .at_least("V", 1)
        .at_most("V", 1024)
        .describe(
            "Mean cross entropy of the logits input @ weight.T + bias over the rows whose target is not `ignore_index`, with `label_smoothing` as in cross_entropy; NaN where every row is ignored. The logits are not rounded to the dtype of the case, unless such an intermediate is declared.",
            "x = input @ weight.T + bias; mean over rows with target != ignore_index of (1 - label_smoothing)*(lse(x) - x[target]) + label_smoothing*mean(lse(x) - x)",
        )
        .help("weight", "one row for each class")
        .help("bias", "added to the logits")
        .bounded_by("mean of the rows' bounds, with d = u*F(H)*(|input||weight| + |bias|) on each logit: cross_entropy's, and sum over the other classes of p*expm1(d + d[target]); then u*(F + Q)*mean of their losses")
        .amplified_by(&[Strategy::Tiny, Strategy::Regular])
        .usual_bugs(&["the last chunk of rows or classes dropped", "divided by all rows, ignored ones too"]);
    BuiltIn::new(smoothed(schema), expect)
}

fn expect(call: &Call<'_>) -> Result<Vec<Expectation>, OpError> {
    let (input, weight, bias) = (call.input("input")?, call.input("weight")?, call.optional("bias"));
    let target = call.input("target")?;
    let (count, inner, classes) = (call.size("N")?, call.size("H")?, call.size("V")?);
    let units = call.units;
    let mut turned = vec![0.0; weight.len()];
    for (class, row) in weight.chunks_exact(inner.max(1)).enumerate() {
        row.iter().enumerate().for_each(|(k, value)| turned[k * classes + class] = *value);
    }
    let (mut logits, mut magnitudes) = (vec![0.0; count * classes], vec![0.0; count * classes]);
    products(input, &turned, inner, classes, &mut logits, &mut magnitudes);
    let exact = all_integers(input) && all_integers(weight) && bias.is_none_or(all_integers);
    let terms = inner + usize::from(bias.is_some());
    let share = units.u * call.summation(terms.max(1))? + units.input * (2.0 + units.input);
    let underflow = terms as f64 * (units.eta + units.flush) + flushed(input, weight, inner, units.flush);
    let mut rows = RowLosses::new(call, classes)?;
    let mut losses = Vec::with_capacity(count);
    let mut errors = vec![0.0; classes];
    let pairs = logits.chunks_exact_mut(classes.max(1)).zip(magnitudes.chunks_exact(classes.max(1)));
    for ((logits, magnitudes), target) in pairs.zip(target) {
        let (mut overflow, mut beyond) = (false, false);
        for (class, ((logit, magnitude), error)) in logits.iter_mut().zip(magnitudes).zip(&mut errors).enumerate() {
            let added = bias.and_then(|bias| bias.get(class)).copied().unwrap_or(0.0);
            *logit += added;
            let magnitude = magnitude + added.abs();
            overflow |= magnitude.is_finite() && overflows(magnitude, units.max);
            beyond |= units.reference > 0.0 && !logit.is_finite();
            *error = if exact && magnitude <= units.exact { 0.0 } else { share * magnitude + underflow };
            *error += units.mid * (logit.abs() + *error) + units.mid_eta;
        }
        losses.push(match rows.of(logits, Some(&errors), *target)? {
            RowLoss::Known(loss) if overflow && !beyond => {
                RowLoss::Known(Rounded { overflow: Overflow::Before, ..loss })
            }
            // In float64 the reference overflows with the kernel, and its logits say nothing.
            RowLoss::Known(loss) if beyond => RowLoss::Undetermined(loss.value, "a logit that is not finite"),
            loss => loss,
        });
    }
    mean_of(losses, "|input||weight| of a logit, or a row's loss", call)
}

/// What products lose at most where subnormal inputs count as zero.
fn flushed(input: &[f64], weight: &[f64], inner: usize, flush: f64) -> f64 {
    if flush == 0.0 {
        return 0.0;
    }
    let largest = |values: &[f64]| values.iter().filter(|value| value.is_finite()).fold(0.0f64, |m, x| m.max(x.abs()));
    inner as f64 * flush * (largest(input) + largest(weight))
}
