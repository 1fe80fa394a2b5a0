//! moe_align_block_size: the entries of each expert, padded to whole blocks.

use gpuemu_tensor::DType;

use super::by_expert;
use crate::ops::indexing::copied;
use crate::ops::{BuiltIn, Call, Expectation, OpError};
use crate::schema::{Scalar, Schema};

pub(super) fn ops() -> Vec<BuiltIn> {
    vec![BuiltIn::new(
        Schema::builtin(
            "moe_align_block_size",
            "topk_ids:int32[T,K] in 0..num_experts block_size:int=16 num_experts:int=8 -> sorted_token_ids:int32[T*K+num_experts*(block_size-1)] expert_ids:int32[(T*K+num_experts*(block_size-1)+block_size-1)/block_size] num_tokens_post_pad:int32[1]",
        )
        .dtypes(&[DType::F32])
        .at_least("K", 1)
        .at_most("K", 8)
        .choices("block_size", &[Scalar::Int(16), Scalar::Int(8), Scalar::Int(32)])
        .choices("num_experts", &[Scalar::Int(8), Scalar::Int(1), Scalar::Int(5), Scalar::Int(16)])
        .describe(
            "Entries (token t, choice j: t*K+j) by expert and in their own order within one, each expert's padded with T*K to whole blocks; so is everything behind the last block. Experts of blocks that are not used are left open.",
            "sorted_token_ids = [entries of expert 0, T*K..., entries of expert 1, ...]",
        )
        .help("topk_ids", "the experts of each token")
        .help("block_size", "rows of a block of the grouped product that follows")
        .help("num_experts", "how many experts there are")
        .help("sorted_token_ids", "entries in the order of their experts, T*K where there is none")
        .help("expert_ids", "the expert of each block")
        .help("num_tokens_post_pad", "entries with padding: where the last block ends")
        .keywords(&["mixture of experts", "dispatch", "padding", "fused_moe", "sort"])
        .bounded_by("0: whole numbers are exact; the experts of unused blocks are not looked at")
        .usual_bugs(&[
            "experts without tokens given a block",
            "a full last block padded by one more",
            "padding left unwritten",
            "order within an expert not kept",
        ]),
        expect,
    )]
}

fn expect(call: &Call<'_>) -> Result<Vec<Expectation>, OpError> {
    let ids = call.input("topk_ids")?;
    let (experts, block) = (call.size("num_experts")?, call.size("block_size")?.max(1));
    let padding = ids.len() as f64;
    let capacity = ids.len() + experts * (block - 1);
    let (mut sorted, mut blocks) = (Vec::with_capacity(capacity), Vec::new());
    for (expert, entries) in by_expert(ids, experts).iter().enumerate() {
        sorted.extend(entries.iter().map(|entry| *entry as f64));
        sorted.resize(sorted.len().next_multiple_of(block), padding);
        blocks.resize(sorted.len() / block, expert as f64);
    }
    let used = sorted.len();
    sorted.resize(capacity.max(used), padding);
    let mut expert_ids = copied(blocks);
    for _ in expert_ids.values.len()..capacity.div_ceil(block) {
        expert_ids.push_undetermined(0.0, "the expert of an unused block");
    }
    Ok(vec![copied(sorted), expert_ids, copied([used as f64])])
}
