//! Attention over packed sequences of different lengths.

use super::head::{Head, Merging, Sight};
use super::output::{Attended, each_head};
use super::row::Setting;
use crate::case::Strategy;
use crate::ops::{BuiltIn, Call, Expectation, OpError};
use crate::schema::{Property, Scalar, Schema};

pub(in crate::ops) fn op() -> BuiltIn {
    BuiltIn::new(
        Schema::builtin(
            "attention_varlen",
            "q[T,H*G,D] k[S,H,D] v[S,H,D] cu_seqlens_q:int32[B+1] in offsets(T) \
                 cu_seqlens_k:int32[B+1] in offsets(S) scale:float=0.0 causal:bool=false window:int=0 \
                 softcap:float=0.0 bottom_right:bool=true masked_rows_zero:bool=true masked_lse_positive:bool=false \
                 -> out[T,H*G,D] lse?:float32[H*G,T]",
        )
        .alias(&["flash_attn_varlen_func", "flash_attn_varlen", "varlen_attention"])
        .reduces(&["S"])
        .at_least("D", 1)
        .at_most("D", 128)
        .at_least("B", 1)
        .at_most("B", 6)
        .at_most("H", 4)
        .at_least("G", 1)
        .at_most("G", 4)
        .choices("causal", &[Scalar::Bool(false), Scalar::Bool(true)])
        .choices("window", &[Scalar::Int(0), Scalar::Int(0), Scalar::Int(0), Scalar::Int(7)])
        .choices("softcap", &[Scalar::Float(0.0), Scalar::Float(0.0), Scalar::Float(0.0), Scalar::Float(20.0)])
        .choices("bottom_right", &[Scalar::Bool(true), Scalar::Bool(true), Scalar::Bool(false)])
        .describe(
            "Attention of B packed sequences: rows cu_seqlens_q[b]..cu_seqlens_q[b+1] of q attend to rows \
                 cu_seqlens_k[b]..cu_seqlens_k[b+1] of k and v, and to no others. `scale` 0 means 1/sqrt(D); query \
                 head h reads key head h/G; `softcap` c > 0 makes a score s into c*tanh(s/c), before masks. With \
                 `causal`, query i of m sees keys up to i + n - m of its n (`bottom_right`, as flash-attn does from \
                 2.1 on), or up to i; `window` > 0 implies it and leaves only the last `window` of those. A row that \
                 sees nothing is 0, or NaN without `masked_rows_zero`; its log-sum-exp is -Inf, or +Inf with \
                 `masked_lse_positive`.",
            "out[t,h] = sum_j softmax_j(softcap(q[t,h].k[j,h/G]*scale))*v[j,h/G], j in the sequence of t",
        )
        .help("cu_seqlens_q", "where each sequence's queries begin: 0 first, T last")
        .help("cu_seqlens_k", "where each sequence's keys begin: 0 first, S last")
        .help("scale", "factor on scores; 0 means 1/sqrt(D)")
        .help("causal", "whether a query sees no keys after its own position")
        .help("window", "how many keys back, its own included, a query sees; 0 means all")
        .help("softcap", "bound of scores by a tanh; 0 means none")
        .help("bottom_right", "the last query is at the position of the last key, rather than the first at the first")
        .help("masked_rows_zero", "rows that see no key are 0, not NaN")
        .help("masked_lse_positive", "the log-sum-exp of rows that see no key is +Inf, as flash-attn 2 has it")
        .help("lse", "natural log of the sum of exponentials of the scores")
        .keywords(&["flash attention", "packed", "ragged", "cu_seqlens", "unpadded", "nested"])
        .bounded_by("as attention, F over the keys of the row's own sequence")
        .holds(&[Property::Homogeneous { input: "v", degree: 1 }])
        .amplified_by(&[Strategy::Regular, Strategy::Tiny])
        .usual_bugs(&[
            "keys of the next sequence enter the sum",
            "causal mask aligned at the other corner",
            "last query of a sequence missing",
            "head index ignored",
        ]),
        expect,
    )
}

fn expect(call: &Call<'_>) -> Result<Vec<Expectation>, OpError> {
    let [key_heads, groups, width] = [call.size("H")?, call.size("G")?, call.size("D")?];
    let [sequences, tokens] = [call.size("B")?, call.size("T")?];
    let (q, k, v) = (call.input("q")?, call.input("k")?, call.input("v")?);
    let starts = |name: &str| -> Result<Vec<usize>, OpError> {
        Ok(call.input(name)?.iter().map(|offset| *offset as usize).collect())
    };
    let (query_starts, key_starts) = (starts("cu_seqlens_q")?, starts("cu_seqlens_k")?);
    let mut setting = Setting::of(call, width)?;
    setting.positive_lse = call.flag("masked_lse_positive");
    let window = call.int("window")?.max(0) as usize;
    let causal = call.flag("causal") || window > 0;
    let bottom_right = call.flag("bottom_right");
    let heads = key_heads * groups;
    let work = q.len() * k.len() / (key_heads * width * sequences).max(1);
    let parts = each_head(sequences * key_heads, work, |index| {
        let (sequence, head) = (index / key_heads.max(1), index % key_heads.max(1));
        let queries = query_starts[sequence]..query_starts[sequence + 1];
        let keys = key_starts[sequence]..key_starts[sequence + 1];
        let gather = |tensor: &[f64]| -> Vec<f64> {
            keys.clone().flat_map(|key| tensor[(key * key_heads + head) * width..][..width].to_vec()).collect()
        };
        let rows = (0..groups).flat_map(|group| queries.clone().map(move |query| (group, query)));
        let row = |(group, query)| q[(query * heads + head * groups + group) * width..][..width].to_vec();
        let own: Vec<f64> = rows.flat_map(row).collect();
        let (k, v) = (gather(k), gather(v));
        let packed = Head::new(call, &k, &v, width, Merging::default())?;
        let (count, reached) = (queries.len(), keys.len());
        Ok(setting.attend(&packed, &own, |row| {
            let query = row % count.max(1);
            // Keys that the query's position is past, itself included.
            let passed = if bottom_right { (query + 1 + reached).saturating_sub(count) } else { query + 1 };
            let end = if causal { passed.min(reached) } else { reached };
            let first = if window > 0 { passed.saturating_sub(window).min(end) } else { 0 };
            Sight::of(first..end)
        }))
    })?;
    let sequence_of = |token: usize| query_starts.partition_point(|start| *start <= token).saturating_sub(1);
    let place = |token: usize, head: usize| -> (&Attended, usize) {
        let sequence = sequence_of(token);
        let (start, end) = (query_starts[sequence], query_starts[sequence + 1]);
        (&parts[sequence * key_heads + head / groups.max(1)], head % groups.max(1) * (end - start) + token - start)
    };
    let mut out = Expectation::with_capacity(q.len());
    for token in 0..tokens {
        for head in 0..heads {
            let (part, row) = place(token, head);
            out.append_range(&part.out, row * width..(row + 1) * width);
        }
    }
    if !call.wants("lse") {
        return Ok(vec![out]);
    }
    let mut lse = Expectation::with_capacity(tokens * heads);
    for head in 0..heads {
        for token in 0..tokens {
            let (part, row) = place(token, head);
            lse.append_range(&part.lse, row..row + 1);
        }
    }
    Ok(vec![out, lse])
}
