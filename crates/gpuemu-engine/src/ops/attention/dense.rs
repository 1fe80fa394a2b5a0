//! Scaled dot-product attention with grouped heads, causal and sliding-window masks, a boolean
//! mask, softcap, and the log-sum-exp as a second output.

use super::head::{Head, Merging, Sight};
use super::output::{Attended, each_head};
use super::row::Setting;
use crate::case::Strategy;
use crate::ops::{BuiltIn, Call, Expectation, OpError};
use crate::schema::{Property, Scalar, Schema};

pub(in crate::ops) fn op() -> BuiltIn {
    BuiltIn::new(
        Schema::builtin(
            "attention",
            "q[B,H*G,M,D] k[B,H,N,D] v[B,H,N,D] mask?:bool[M,N] scale:float=0.0 causal:bool=false \
                 window:int=0 softcap:float=0.0 masked_rows_zero:bool=false bottom_right:bool=false \
                 -> out[B,H*G,M,D] lse?:float32[B,H*G,M]",
        )
        .alias(&["flash_attention", "scaled_dot_product_attention", "sdpa"])
        .reduces(&["N"])
        .at_least("N", 1)
        .at_least("D", 1)
        .at_most("D", 128)
        .at_most("B", 8)
        .at_most("H", 4)
        .at_least("G", 1)
        .at_most("G", 4)
        .choices("causal", &[Scalar::Bool(false), Scalar::Bool(true)])
        .choices("window", &[Scalar::Int(0), Scalar::Int(0), Scalar::Int(0), Scalar::Int(7)])
        .choices("softcap", &[Scalar::Float(0.0), Scalar::Float(0.0), Scalar::Float(0.0), Scalar::Float(20.0)])
        .choices("masked_rows_zero", &[Scalar::Bool(false), Scalar::Bool(false), Scalar::Bool(true)])
        .choices("bottom_right", &[Scalar::Bool(false), Scalar::Bool(false), Scalar::Bool(true)])
        .describe(
            "softmax(q k^T * scale) v. `scale` 0 means 1/sqrt(D); query head h reads key head h/G; `softcap` c > 0 \
                 makes a score s into c*tanh(s/c), before masks; `causal` lets query i see keys 0..=i, counted from \
                 the first key whatever M and N are, or where `bottom_right` keys 0..=i+N-M; `window` > 0 implies it and leaves only the last `window` of \
                 those; true in `mask` means visible; a row that sees nothing is NaN, or 0 where \
                 `masked_rows_zero`; `lse` is the natural log of the sum of exponentials of the scores, -Inf for a \
                 row that sees nothing.",
            "sum_j softmax_j(softcap(q.k_j*scale))*v_j",
        )
        .holds(&[
            Property::Homogeneous { input: "v", degree: 1 },
            Property::MaskedOutIgnored { mask: "mask", inputs: &["k"] },
        ])
        .amplified_by(&[Strategy::Regular, Strategy::Tiny])
        .help("q", "queries: batch, query heads, queries, width")
        .help("k", "keys: batch, key heads, keys, width; each is read by G query heads")
        .help("v", "values, one for each key")
        .help("mask", "which query sees which key, of every batch and head: true is visible")
        .help("lse", "natural logarithm of the sum of exponentials of the scores, which a backward needs")
        .help("scale", "factor of the scores; 0 means 1/sqrt(D)")
        .help("causal", "whether query i sees keys 0..=i only, counted from the first key")
        .help("bottom_right", "whether the last query is at the last key, as flash-attn counts, and not the first at the first")
        .help("window", "how many keys a query sees at most, the last of them its own; 0 for all, above 0 causal too")
        .help("softcap", "c of c*tanh(score/c), applied before masks; 0 for none")
        .help("masked_rows_zero", "whether a query that sees no key gives 0 and not NaN")
        .bounded_by("T + u*(F(N) + Q + 1)*(sum(p*|v|) + |y|) + (u_mid + 2*u_in + u_in^2)*sum(p*|v|) + eta_mid*sum|v|/max(S, 1) and \
             underflow, with T = sum(p*e*|v - y|)/(1 - sum(p*e)), at most the hull max|v - y|, e = exp(dS + u*(a*s + \
             E)) - 1, s = max - score (+ |max| where folded), dS = u*(F(D)*|q||k|*scale + 3*|score|) + (u_mid + 2*u_in + \
             u_in^2)*|q||k|*scale, moved through tanh where softcap. lse: u*(F(N) + a*W + E + 3*log(S) + 2*|max|) + \
             max(dS) + N*tiny/S")
        .keywords(&["softmax", "transformer", "flash attention", "grouped query", "gqa", "mqa", "sliding window", "softcap"])
        .usual_bugs(&[
            "scale missing",
            "accumulator not rescaled when the maximum moves",
            "padding keys enter the sum",
            "causal mask off by one",
            "head index ignored",
        ]),
        expect,
    )
}

fn expect(call: &Call<'_>) -> Result<Vec<Expectation>, OpError> {
    let [batches, key_heads, groups] = [call.size("B")?, call.size("H")?, call.size("G")?];
    let [queries, keys, width] = [call.size("M")?, call.size("N")?, call.size("D")?];
    let (q, k, v) = (call.input("q")?, call.input("k")?, call.input("v")?);
    let setting = Setting::of(call, width)?;
    let mask = call.optional("mask");
    let window = call.int("window")?.max(0) as usize;
    let causal = call.flag("causal") || window > 0;
    let bottom_right = call.flag("bottom_right");
    let sight = |row: usize| {
        let query = row % queries.max(1);
        // Keys up to and with the query's own.
        let reach = if bottom_right { (query + 1 + keys).saturating_sub(queries) } else { query + 1 };
        let end = if causal { keys.min(reach) } else { keys };
        let first = if window > 0 { reach.saturating_sub(window).min(end) } else { 0 };
        Sight { mask: mask.map(|mask| &mask[query * keys..][..keys]), ..Sight::of(first..end) }
    };
    // The query heads of a key head lie one after the other.
    let rows = groups * queries * width;
    let parts = each_head(batches * key_heads, q.len() * keys, |head| {
        let part = head * keys * width..(head + 1) * keys * width;
        let packed = Head::new(call, &k[part.clone()], &v[part], width, Merging::default())?;
        Ok(setting.attend(&packed, &q[head * rows..][..rows], sight))
    })?;
    let Attended { out, lse } = parts.into_iter().collect();
    Ok(if call.wants("lse") { vec![out, lse] } else { vec![out] })
}

#[cfg(test)]
mod tests {
    use gpuemu_tensor::DType;

    use crate::case::{Strategy, materialise};
    use crate::oracle::Subject;
    use crate::schema::Scalar;
    use crate::{Sampler, ops};

    /// What the definition says, row by row: work on many cores must give the same.
    #[test]
    fn large_cases_are_what_the_definition_says() {
        let subject = Subject::new(ops::find("attention").unwrap());
        let [heads, queries, keys, width] = [2usize, 150, 70, 33];
        for causal in [false, true] {
            let sizes = [("B", 1), ("H", 1), ("G", heads), ("M", queries), ("N", keys), ("D", width)];
            let mut sampler = Sampler { dtypes: vec![DType::F32], strategy: Strategy::Regular, ..Sampler::default() };
            sampler.shapes = vec![sizes.map(|(name, size)| (name.to_string(), size)).to_vec()];
            sampler.absent = vec!["mask".to_string()];
            sampler.parameters.set("causal", Scalar::Bool(causal));
            sampler.parameters.set("window", Scalar::Int(0));
            sampler.parameters.set("softcap", Scalar::Float(0.0));
            sampler.parameters.set("bottom_right", Scalar::Bool(false));
            let case = materialise(subject.schema(), &subject.describe(&sampler, 5)).unwrap();
            let found = subject.expect(&case).unwrap();
            let [q, k, v] = [0, 1, 2].map(|index: usize| case.inputs[index].as_ref().unwrap().to_f64());
            for row in 0..heads * queries {
                let seen = if causal { keys.min(row % queries + 1) } else { keys };
                let dot = |key: usize| -> f64 {
                    (0..width).map(|d| q[row * width + d] * k[key * width + d]).sum::<f64>() / (width as f64).sqrt()
                };
                let scores: Vec<f64> = (0..seen).map(dot).collect();
                let most = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
                let weights: Vec<f64> = scores.iter().map(|score| libm::exp(score - most)).collect();
                let total: f64 = weights.iter().sum();
                for column in 0..width {
                    let terms = weights.iter().enumerate().map(|(key, weight)| weight * v[key * width + column]);
                    let (expected, place) = (terms.sum::<f64>() / total, row * width + column);
                    let allowed = 1e-8 * found[0].delta[place];
                    assert!((found[0].values[place] - expected).abs() <= allowed + 1e-14 * expected.abs());
                    assert!(found[0].delta[place] < 1e-3);
                }
            }
        }
    }
}
