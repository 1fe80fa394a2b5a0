//! Merging the partial results of splits of the keys by their log-sum-exps.

use super::tile::LANES;
use super::weights::{Weighed, largest, weigh};
use crate::case::Strategy;
use crate::ops::expectation::overflows;
use crate::ops::rounded::ANY_OVERFLOW;
use crate::ops::{BuiltIn, Call, ExcuseKind, Expectation, OpError};
use crate::schema::{Scalar, Schema};

pub(in crate::ops) fn op() -> BuiltIn {
    BuiltIn::new(
        Schema::builtin(
            "merge_attention_states",
            "outs[S,T,H,D] lses:float32[S,T,H] masked_rows_zero:bool=true -> out[T,H,D] lse:float32[T,H]",
        )
        .alias(&["merge_attn_states", "merge_states"])
        .reduces(&["S"])
        .at_least("S", 1)
        .at_most("S", 64)
        .at_most("D", 128)
        .choices("masked_rows_zero", &[Scalar::Bool(true), Scalar::Bool(false)])
        .describe(
            "Partial attention outputs of S splits of the keys, merged at once by the softmax of their log-sum-exps \
                 (natural logs). A split whose log-sum-exp is -Inf has weight 0; where its partial output is not \
                 finite nothing is demanded, since kernels that multiply by 0 and kernels that skip it differ. Where \
                 every split has -Inf, out is 0 and lse -Inf, or out is NaN without `masked_rows_zero`; a \
                 log-sum-exp of +Inf or NaN makes NaN.",
            "out = sum_s exp(lses_s - lse)*outs_s, lse = log(sum_s exp(lses_s))",
        )
        .help("outs", "the normalised output of each split")
        .help("lses", "the log-sum-exp of the scores of each split")
        .help("masked_rows_zero", "where no split has a key, out is 0, not NaN")
        .keywords(&["flash decoding", "combine", "split kv", "cascade attention", "lse"])
        .bounded_by(
            "e_s = expm1(u(a(max - lses_s) + E)); min(sum p e|o_s - out|/(1 - sum p e), hull) + u(F(S) + Q + 1)(sum \
             p|o_s| + |out|); lse: u(F(S) + a sum p(max - lses_s) + E + 3 ln sum + 2|max|)",
        )
        .amplified_by(&[Strategy::Regular])
        .usual_bugs(&[
            "splits averaged rather than weighted",
            "maximum not subtracted before exp",
            "exp of base 2 with natural logs",
            "last split left out",
        ]),
        expect,
    )
}

const NAN_TOO: ExcuseKind = ExcuseKind::Overflow { nan: true, infinite: false, value: None };

fn expect(call: &Call<'_>) -> Result<Vec<Expectation>, OpError> {
    let [splits, tokens, heads, width] = [call.size("S")?, call.size("T")?, call.size("H")?, call.size("D")?];
    let (outs, lses) = (call.input("outs")?, call.input("lses")?);
    let rows = tokens * heads;
    let units = call.units;
    let summation = call.summation(splits.max(1))?;
    let mut out = Expectation::with_capacity(rows * width);
    let mut lse = Expectation::with_capacity(rows);
    let stride = splits.next_multiple_of(LANES);
    let (mut weights, mut errors) = (vec![0.0; stride], vec![0.0; stride]);
    for row in 0..rows {
        weights.fill(f64::NEG_INFINITY);
        errors.fill(0.0);
        (0..splits).for_each(|split| weights[split] = lses[split * rows + row]);
        let (maximum, poisoned) = largest(&weights);
        if poisoned || maximum == f64::INFINITY {
            (0..width).for_each(|_| out.push(f64::NAN, 0.0));
            if poisoned {
                lse.push(f64::NAN, 0.0);
            } else {
                lse.push_overflow(maximum, 0.0, NAN_TOO, "a log-sum-exp of infinity");
            }
            continue;
        }
        if maximum == f64::NEG_INFINITY {
            let zero = call.flag("masked_rows_zero");
            for column in 0..width {
                let special = (0..splits).any(|split| !outs[(split * rows + row) * width + column].is_finite());
                match (zero, special) {
                    (true, true) => out.push_undetermined(0.0, "weight 0 times a value that is not finite"),
                    (true, false) => out.push(0.0, 0.0),
                    (false, _) => out.push(f64::NAN, 0.0),
                }
            }
            if zero {
                lse.push(maximum, 0.0);
            } else {
                lse.push_overflow(maximum, 0.0, NAN_TOO, "no split with a key");
            }
            continue;
        }
        let folded = if call.precision.folded { maximum.abs() } else { 0.0 };
        let (slope, constant) = (units.u * units.argument, units.u * (units.argument * folded + units.exp));
        let weighed = weigh(slope, constant, maximum, &mut weights, &mut errors);
        let log = libm::log(weighed.sum);
        let condition =
            summation + units.argument * (weighed.spread + folded) + units.exp + 3.0 * log + 2.0 * maximum.abs();
        lse.push(maximum + log, units.u * condition + splits as f64 * units.tiny / weighed.sum);
        for column in 0..width {
            let value = |split: usize| outs[(split * rows + row) * width + column];
            element(call, summation, (&weighed, &weights, &errors), value, splits, &mut out);
        }
    }
    Ok(vec![out, lse])
}

fn element(
    call: &Call<'_>,
    summation: f64,
    (weighed, weights, errors): (&Weighed, &[f64], &[f64]),
    value: impl Fn(usize) -> f64,
    splits: usize,
    out: &mut Expectation,
) {
    let units = call.units;
    let (mut y, mut magnitude, mut all, mut hidden) = (0.0, 0.0, 0.0, false);
    for (split, weight) in weights[..splits].iter().enumerate() {
        let value = value(split);
        hidden |= !value.is_finite() && weight * weighed.sum < 1e-30;
        y += weight * value;
        magnitude += weight * value.abs();
        all += value.abs();
    }
    if hidden {
        return out.push_undetermined(y, "weight 0 times a value that is not finite");
    }
    if !y.is_finite() {
        return out.push(y, 0.0);
    }
    let (mut moved, mut hull) = (0.0, 0.0f64);
    for (split, error) in errors[..splits].iter().enumerate() {
        let distance = (value(split) - y).abs();
        moved += error * distance;
        hull = hull.max(distance);
    }
    let shift = if weighed.total_error >= 0.5 { hull } else { (moved / (1.0 - weighed.total_error)).min(hull) };
    let delta = shift
        + units.u * (summation + units.division + 1.0) * (magnitude + y.abs())
        + units.tiny * (all / weighed.sum + y.abs() * splits as f64 / weighed.sum + 1.0)
        + (splits as f64 * units.flush).min(magnitude);
    if overflows(all, units.max) {
        out.push_overflow(y, delta, ANY_OVERFLOW, "sum of partial outputs");
    } else {
        out.push(y, delta);
    }
}
