//! Attention with something added to the scores.

use super::head::{Head, Merging, Sight};
use super::output::{Attended, each_head};
use super::row::Setting;
use crate::case::Strategy;
use crate::ops::{BuiltIn, Call, Expectation, OpError};
use crate::schema::{Property, Scalar, Schema};

pub(in crate::ops) fn op() -> BuiltIn {
    BuiltIn::new(
        Schema::builtin(
            "attention_bias",
            "query[B,H*G,M,D] key[B,H,N,D] value[B,H,N,D] attn_mask[H*G,M,N] scale:float=0.0 \
                 masked_rows_zero:bool=false -> out[B,H*G,M,D] lse?:float32[B,H*G,M]",
        )
        .alias(&["attention_alibi", "attention_with_bias"])
        .reduces(&["N"])
        .at_least("N", 1)
        .at_least("D", 1)
        .at_most("D", 128)
        .at_most("B", 8)
        .at_most("H", 4)
        .at_least("G", 1)
        .at_most("G", 4)
        .choices("masked_rows_zero", &[Scalar::Bool(false), Scalar::Bool(true)])
        .describe(
            "softmax(query key^T * scale + attn_mask) value, with a floating attn_mask as torch's \
                 scaled_dot_product_attention takes it: added to the scores after `scale`, so that -Inf hides a key \
                 (ALiBi and relative positions are such biases). `scale` 0 means 1/sqrt(D); query head h reads key \
                 head h/G. A row of nothing but -Inf is NaN, or 0 where `masked_rows_zero`; `lse` is the natural log \
                 of the sum of exponentials of the scores.",
            "sum_j softmax_j(query.key_j*scale + attn_mask_j)*value_j",
        )
        .help("attn_mask", "what is added to the scores of each query head, for every batch")
        .help("scale", "factor on dot products; 0 means 1/sqrt(D)")
        .help("masked_rows_zero", "rows of nothing but -Inf are 0, not NaN")
        .help("lse", "natural log of the sum of exponentials of the scores")
        .keywords(&["sdpa", "alibi", "relative position", "additive mask", "attn_bias"])
        .bounded_by("as attention, with u(2|bias| + |score|) more on each score")
        .holds(&[Property::Homogeneous { input: "value", degree: 1 }])
        .amplified_by(&[Strategy::Regular, Strategy::Tiny])
        .usual_bugs(&["bias scaled with the scores", "bias of another head", "padding keys enter the sum"]),
        expect,
    )
}

fn expect(call: &Call<'_>) -> Result<Vec<Expectation>, OpError> {
    let [batches, key_heads, groups] = [call.size("B")?, call.size("H")?, call.size("G")?];
    let [queries, keys, width] = [call.size("M")?, call.size("N")?, call.size("D")?];
    let (q, k, v) = (call.input("query")?, call.input("key")?, call.input("value")?);
    let bias = call.input("attn_mask")?;
    let setting = Setting::of(call, width)?;
    let rows = groups * queries * width;
    let parts = each_head(batches * key_heads, q.len() * keys, |head| {
        let part = head * keys * width..(head + 1) * keys * width;
        let packed = Head::new(call, &k[part.clone()], &v[part], width, Merging::default())?;
        let own = &bias[head % key_heads.max(1) * groups * queries * keys..];
        let sight = |row: usize| Sight { bias: Some(&own[row * keys..][..keys]), ..Sight::of(0..keys) };
        Ok(setting.attend(&packed, &q[head * rows..][..rows], sight))
    })?;
    let Attended { out, lse } = parts.into_iter().collect();
    Ok(if call.wants("lse") { vec![out, lse] } else { vec![out] })
}
