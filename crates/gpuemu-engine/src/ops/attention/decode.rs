//! Attention of one query a sequence over keys in place or in pages: what decoding does.

use super::head::{Head, Merging, Sight};
use super::output::{Attended, each_head};
use super::row::Setting;
use crate::case::Strategy;
use crate::ops::{BuiltIn, Call, Expectation, OpError};
use crate::schema::{Property, Scalar, Schema};

const BOUND: &str = "as attention; with several splits e grows by u(6(max - s_j) + 3|max| + 3 ln N + E + Q) and \
                     F(N) by num_splits + Q + 3: the log-sum-exp of a split is rounded and exponentiated again";
const SPLITS: &str = "parts of the keys whose results are merged by log-sum-exp; changes no value, only rounding";

/// Attention over keys that lie together.
pub(in crate::ops) fn decode_attention() -> BuiltIn {
    BuiltIn::new(
        Schema::builtin(
            "decode_attention",
            "q[B,H*G,D] k[B,H,N,D] v[B,H,N,D] seq_lens:int32[B] in 1..N+1 scale:float=0.0 softcap:float=0.0 \
                 num_splits:int=1 -> out[B,H*G,D] lse?:float32[B,H*G]",
        )
        .alias(&["flash_decoding", "split_kv_attention"])
        .reduces(&["N"])
        .at_most("B", 64)
        .at_least("N", 1)
        .at_least("D", 1)
        .at_most("D", 128)
        .at_most("H", 4)
        .at_least("G", 1)
        .at_most("G", 8)
        .choices("softcap", &[Scalar::Float(0.0), Scalar::Float(0.0), Scalar::Float(20.0)])
        .choices("num_splits", &[Scalar::Int(1), Scalar::Int(2), Scalar::Int(4), Scalar::Int(7)])
        .describe(
            "One query of each sequence attends to the first seq_lens[b] keys of its cache; what lies behind them \
                 never reaches the output, NaN included. `scale` 0 means 1/sqrt(D); query head h reads key head h/G; \
                 `softcap` c > 0 makes a score s into c*tanh(s/c); `num_splits` changes rounding only; `lse` is the \
                 natural log of the sum of exponentials of the scores.",
            "out[b,h] = sum_{j<seq_lens[b]} softmax_j(softcap(q[b,h].k[b,h/G,j]*scale))*v[b,h/G,j]",
        )
        .help("seq_lens", "keys that each sequence has")
        .help("scale", "factor on scores; 0 means 1/sqrt(D)")
        .help("softcap", "bound of scores by a tanh; 0 means none")
        .help("num_splits", SPLITS)
        .help("lse", "natural log of the sum of exponentials of the scores")
        .keywords(&["flash decoding", "split kv", "kv cache", "inference", "gqa"])
        .bounded_by(BOUND)
        .holds(&[Property::Homogeneous { input: "v", degree: 1 }])
        .amplified_by(&[Strategy::Regular, Strategy::Tiny])
        .usual_bugs(&[
            "splits averaged in place of weighted by their log-sum-exp",
            "empty splits enter the merge",
            "keys behind seq_lens enter the sum",
            "head index ignored",
        ]),
        expect_decode,
    )
}

/// Attention over keys in pages.
pub(in crate::ops) fn paged_attention() -> BuiltIn {
    BuiltIn::new(
        Schema::builtin(
            "paged_attention",
            "query[B,H*G,D] key_cache[P,S,H,D] value_cache[P,S,H,D] block_tables:int32[B,L] in 0..P \
                 seq_lens:int32[B] in 1..L*S+1 scale:float=0.0 softcap:float=0.0 num_splits:int=1 -> out[B,H*G,D]",
        )
        .alias(&["paged_attention_v1", "paged_attention_v2", "paged_attention_decode"])
        .at_least("P", 1)
        .at_least("L", 1)
        .at_most("L", 64)
        .sizes("S", &[1, 8, 16])
        .at_least("D", 1)
        .at_most("D", 128)
        .at_most("H", 4)
        .at_least("G", 1)
        .at_most("G", 8)
        .choices("softcap", &[Scalar::Float(0.0), Scalar::Float(0.0), Scalar::Float(20.0)])
        .choices("num_splits", &[Scalar::Int(1), Scalar::Int(2)])
        .describe(
            "One query of each sequence attends to its seq_lens[b] keys in pages of S: key j of sequence b is row \
                 j%S of page block_tables[b,j/S]. Caches are [pages, page size, key heads, D] (the layout of \
                 flash-attn and vLLM's flash backend). Pages may be shared; what no sequence reaches never matters, \
                 NaN included. `scale` 0 means 1/sqrt(D); query head h reads key head h/G; `softcap` c > 0 makes a \
                 score s into c*tanh(s/c); `num_splits` changes rounding only.",
            "out[b,h] = sum_{j<seq_lens[b]} softmax_j(softcap(query[b,h].K(b,j)*scale))*V(b,j)",
        )
        .help("key_cache", "pages of keys")
        .help("value_cache", "pages of values")
        .help("block_tables", "the pages of each sequence, in order; those behind its length are not read")
        .help("seq_lens", "keys that each sequence has")
        .help("scale", "factor on scores; 0 means 1/sqrt(D)")
        .help("softcap", "bound of scores by a tanh; 0 means none")
        .help("num_splits", SPLITS)
        .keywords(&["vllm", "page table", "kv cache", "block table", "decode", "inference"])
        .bounded_by(BOUND)
        .holds(&[Property::Homogeneous { input: "value_cache", degree: 1 }])
        .amplified_by(&[Strategy::Regular, Strategy::Tiny])
        .usual_bugs(&[
            "last, partial page not masked",
            "page taken by its place rather than through the table",
            "slot within a page off by one",
            "head index ignored",
        ]),
        expect_paged,
    )
}

fn expect_decode(call: &Call<'_>) -> Result<Vec<Expectation>, OpError> {
    let [heads, keys, width] = [call.size("H")?, call.size("N")?, call.size("D")?];
    let (k, v) = (call.input("k")?, call.input("v")?);
    let Attended { out, lse } = each_sequence(call, call.input("q")?, |sequence, head, count| {
        let part = (sequence * heads + head) * keys * width;
        let own = part..part + count * width;
        (k[own.clone()].to_vec(), v[own].to_vec())
    })?;
    Ok(if call.wants("lse") { vec![out, lse] } else { vec![out] })
}

fn expect_paged(call: &Call<'_>) -> Result<Vec<Expectation>, OpError> {
    let [heads, page, width] = [call.size("H")?, call.size("S")?, call.size("D")?];
    let pages = call.size("L")?;
    let (keys, values) = (call.input("key_cache")?, call.input("value_cache")?);
    let tables = call.input("block_tables")?;
    let attended = each_sequence(call, call.input("query")?, |sequence, head, count| {
        let table = &tables[sequence * pages..][..pages];
        let gather = |cache: &[f64]| -> Vec<f64> {
            let place = |key: usize| ((table[key / page] as usize * page + key % page) * heads + head) * width;
            (0..count).flat_map(|key| cache[place(key)..][..width].to_vec()).collect()
        };
        (gather(keys), gather(values))
    })?;
    Ok(vec![attended.out])
}

/// Attends for each sequence and key head to the keys and values that `gather` returns as many of as the length says.
fn each_sequence(
    call: &Call<'_>,
    q: &[f64],
    gather: impl Fn(usize, usize, usize) -> (Vec<f64>, Vec<f64>) + Send + Sync,
) -> Result<Attended, OpError> {
    let [sequences, heads, groups, width] = [call.size("B")?, call.size("H")?, call.size("G")?, call.size("D")?];
    let lengths = call.input("seq_lens")?;
    let splits = call.int("num_splits")?.max(1) as usize;
    let setting = Setting::of(call, width)?;
    let work = (lengths.iter().sum::<f64>() as usize).saturating_mul(heads * groups * width);
    let rows = groups * width;
    let parts = each_head(sequences * heads, work, |index| {
        let (sequence, head) = (index / heads.max(1), index % heads.max(1));
        let count = lengths[sequence] as usize;
        let (k, v) = gather(sequence, head, count);
        let packed = Head::new(call, &k, &v, width, Merging { splits: splits.min(count) })?;
        Ok(setting.attend(&packed, &q[index * rows..][..rows], |_| Sight::of(0..count)))
    })?;
    Ok(parts.into_iter().collect())
}
