//! moe_permute and moe_unpermute: tokens brought into the order of their experts, and back.

use super::by_expert;
use crate::case::Strategy;
use crate::ops::indexing::{COPIED, copied};
use crate::ops::{Arithmetic, BuiltIn, Call, Expectation, OpError, Rounded};
use crate::schema::{Property, Scalar, Schema};

pub(super) fn ops() -> Vec<BuiltIn> {
    vec![permute(), unpermute()]
}

fn permute() -> BuiltIn {
    BuiltIn::new(
        Schema::builtin(
            "moe_permute",
            "hidden[T,D] topk_ids:int32[T,K] in 0..num_experts num_experts:int=8 -> permuted[T*K,D] row_id:int32[T*K] expert_offsets:int32[num_experts+1]",
        )
        .at_least("K", 1)
        .at_most("K", 8)
        .choices("num_experts", &[Scalar::Int(8), Scalar::Int(1), Scalar::Int(5), Scalar::Int(64)])
        .describe(
            "Rows of tokens copied in the order of their experts: by expert, and in their own order within one. Entry t*K+j is choice j of token t.",
            "row_id = argsort(topk_ids.flatten(), stable), permuted[r] = hidden[row_id[r]/K], expert_offsets[e] = count(topk_ids < e)",
        )
        .help("hidden", "one row for each token")
        .help("topk_ids", "the experts of each token")
        .help("num_experts", "how many experts there are")
        .help("row_id", "the entry that each permuted row comes from")
        .help("expert_offsets", "where each expert's rows begin, and at the end their number")
        .keywords(&["mixture of experts", "dispatch", "sort", "token", "expert parallel"])
        .bounded_by(COPIED)
        .holds(&[Property::Linear { input: "hidden" }])
        .usual_bugs(&[
            "entry taken for the token: not divided by K",
            "order within an expert not kept",
            "offsets inclusive in place of exclusive",
            "experts without tokens skipped in the offsets",
        ]),
        expect_permute,
    )
}

fn unpermute() -> BuiltIn {
    BuiltIn::new(
        Schema::builtin(
            "moe_unpermute",
            "permuted[T*K,D] row_id:int32[T*K] in permutation(T*K) topk_weights:float32[T,K] -> out[T,D]",
        )
        .alias(&["moe_combine"])
        .at_least("K", 1)
        .at_most("K", 8)
        .describe(
            "Rows of experts brought back and added up for each token, weighted. Permuted row r belongs to entry row_id[r] = t*K+j: choice j of token t.",
            "out[t] = sum_j topk_weights[t,j]*permuted[r], row_id[r] = t*K+j",
        )
        .help("permuted", "one row for each choice of each token, in the order of the experts")
        .help("row_id", "the entry that each permuted row belongs to")
        .help("topk_weights", "weight of each choice")
        .keywords(&["mixture of experts", "combine", "finalize", "weighted sum", "token"])
        .bounded_by("u*(F(K)+1)*sum_j|w*x|")
        .holds(&[
            Property::Linear { input: "permuted" },
            Property::Linear { input: "topk_weights" },
            Property::Homogeneous { input: "permuted", degree: 1 },
        ])
        .amplified_by(&[Strategy::Regular, Strategy::Integers])
        .usual_bugs(&[
            "permutation applied in the wrong direction",
            "weights in the order of the permuted rows",
            "last choice not added",
            "accumulation in a narrow dtype",
        ]),
        expect_unpermute,
    )
}

fn expect_permute(call: &Call<'_>) -> Result<Vec<Expectation>, OpError> {
    let (hidden, ids) = (call.input("hidden")?, call.input("topk_ids")?);
    let (width, choices) = (call.size("D")?, call.size("K")?.max(1));
    let entries = by_expert(ids, call.size("num_experts")?);
    let order: Vec<usize> = entries.concat();
    let rows = order.iter().flat_map(|entry| &hidden[entry / choices * width..][..width]);
    let mut offsets = vec![0.0];
    for list in &entries {
        offsets.push(offsets.last().copied().unwrap_or(0.0) + list.len() as f64);
    }
    Ok(vec![copied(rows.copied()), copied(order.iter().map(|entry| *entry as f64)), copied(offsets)])
}

fn expect_unpermute(call: &Call<'_>) -> Result<Vec<Expectation>, OpError> {
    let (permuted, row_id, weights) = (call.input("permuted")?, call.input("row_id")?, call.input("topk_weights")?);
    let (tokens, width, choices) = (call.size("T")?, call.size("D")?, call.size("K")?);
    let mut row_of = vec![0; row_id.len()];
    for (row, entry) in row_id.iter().enumerate() {
        row_of[*entry as usize] = row;
    }
    let arithmetic = Arithmetic::of(call);
    let roundings = call.summation(choices.max(1))?;
    let mut expectation = Expectation::with_capacity(tokens * width);
    for token in 0..tokens {
        for column in 0..width {
            let product = |choice: usize| {
                let entry = token * choices + choice;
                let x = Rounded::exact(permuted[row_of[entry] * width + column]);
                arithmetic.multiply(Rounded::exact(weights[entry]), x)
            };
            expectation.push_rounded(arithmetic.sum((0..choices).map(product), roundings), "sum of |w*x|");
        }
    }
    Ok(vec![expectation])
}
