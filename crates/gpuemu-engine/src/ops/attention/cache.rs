//! Writing keys and values into the pages of a cache.

use crate::case::Strategy;
use crate::ops::{BuiltIn, Call, Expectation, OpError};
use crate::schema::Schema;

pub(in crate::ops) fn op() -> BuiltIn {
    BuiltIn::new(
        Schema::builtin(
            "reshape_and_cache",
            "key[T,H,D] value[T,H,D] key_cache[P,S,H,D] value_cache[P,S,H,D] \
                 slot_mapping:int64[T] in permutation(P*S) -> key_cache[P,S,H,D] value_cache[P,S,H,D]",
        )
        .alias(&["reshape_and_cache_flash", "store_kvcache", "paged_kv_cache_update"])
        // No more tokens than slots, whatever is drawn.
        .sizes("T", &[0, 1, 3, 8, 16])
        .sizes("P", &[16, 19])
        .sizes("S", &[1, 8, 16])
        .at_most("H", 8)
        .at_most("D", 128)
        .describe(
            "Copies the key and value of token t into slot slot_mapping[t] of the caches, in place: slot s is row s%S \
                 of page s/S. Caches are [pages, page size, heads, D], as vLLM's reshape_and_cache_flash has them. No \
                 two tokens share a slot; every other slot stays as it is. Bits are copied, NaN included.",
            "key_cache[slot/S, slot%S] = key[t], slot = slot_mapping[t]",
        )
        .help("slot_mapping", "the slot of each token, each at most once")
        .help("key_cache", "pages of keys, overwritten")
        .help("value_cache", "pages of values, overwritten")
        .keywords(&["vllm", "kv cache", "page", "scatter", "in place"])
        .bounded_by("0: copies")
        .amplified_by(&[Strategy::Regular])
        .usual_bugs(&[
            "page and row within it swapped",
            "keys written into the cache of values",
            "tokens taken by place rather than by slot",
            "slots that no token has overwritten",
        ]),
        expect,
    )
}

fn expect(call: &Call<'_>) -> Result<Vec<Expectation>, OpError> {
    let row = call.size("H")? * call.size("D")?;
    let slots = call.input("slot_mapping")?;
    let updated = |cache: &str, tokens: &str| -> Result<Expectation, OpError> {
        let mut values = call.input(cache)?.to_vec();
        for (slot, token) in slots.iter().zip(call.input(tokens)?.chunks_exact(row.max(1))) {
            values[*slot as usize * row..][..row].copy_from_slice(token);
        }
        let delta = vec![0.0; values.len()];
        Ok(Expectation { values, delta, ..Expectation::default() })
    };
    Ok(vec![updated("key_cache", "key")?, updated("value_cache", "value")?])
}
