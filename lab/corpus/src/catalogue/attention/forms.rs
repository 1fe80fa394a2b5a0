//! Attention over packed, paged and split keys, and with a bias.

use gpuemu_engine::runner::{Invocation, RunnerError};

use super::row::{Attended, attend, capped, merge, scale};
use crate::kernels::{Plan, input, size, write};
use crate::mutation::{Mutated, Mutation};
use crate::real::Real;

fn number(call: &Invocation<'_>, name: &str) -> f64 {
    call.parameters.float(name).unwrap_or(0.0)
}

fn whole(call: &Invocation<'_>, name: &str) -> Result<Vec<usize>, RunnerError> {
    Ok(input::<f64>(call, name)?.into_iter().map(|value| value as usize).collect())
}

/// The key head of a query head.
fn key_head(plan: &Plan, head: usize, groups: usize) -> usize {
    if plan.mutation.is(Mutation::SwapOperands) { 0 } else { head / groups.max(1) }
}

/// Attention of packed sequences: a program for each query and head.
pub(super) fn varlen<R: Real>(call: &mut Invocation<'_>, plan: &Plan) -> Result<(), RunnerError> {
    let (q, k, v): (Vec<R>, Vec<R>, Vec<R>) = (input(call, "q")?, input(call, "k")?, input(call, "v")?);
    let (query_starts, key_starts) = (whole(call, "cu_seqlens_q")?, whole(call, "cu_seqlens_k")?);
    let [key_heads, groups, width, tokens] = ["H", "G", "D", "T"].map(|name| size(call, name));
    let heads = key_heads * groups;
    let (scale, softcap) = (scale::<R>(plan, number(call, "scale"), width), number(call, "softcap"));
    let window = call.parameters.int("window").unwrap_or(0).max(0) as isize;
    let causal = call.parameters.flag("causal") || window > 0;
    let bottom_right =
        call.parameters.flag("bottom_right") != plan.mutation.named("causal mask aligned at the other corner");
    let zero = call.parameters.flag("masked_rows_zero");
    let empty_lse = if call.parameters.flag("masked_lse_positive") { -R::lowest() } else { R::lowest() };
    let (mut out, mut lse) = (vec![R::zero(); q.len()], vec![R::zero(); tokens * heads]);
    for (queries, keys) in query_starts.windows(2).zip(key_starts.windows(2)) {
        let (count, mut reached) = ((queries[1] - queries[0]) as isize, keys[1] - keys[0]);
        let shift = if bottom_right { reached as isize - count } else { 0 };
        if plan.mutation.named("keys of the next sequence enter") && keys[1] * key_heads * width < k.len() {
            reached += 1;
        }
        for token in queries[0]..queries[1] {
            let position = (token - queries[0]) as isize + shift + isize::from(plan.mutation.is(Mutation::OffByOne));
            for head in 0..heads {
                let vector = |key: usize| {
                    let place = ((keys[0] + key) * key_heads + key_head(plan, head, groups)) * width;
                    (&k[place..place + width], &v[place..place + width])
                };
                let score = |key: usize, dot: R| {
                    let key = key as isize;
                    let hidden = causal && key > position || window > 0 && key + window <= position;
                    (!hidden).then(|| capped(dot * scale, softcap))
                };
                let row = token * heads + head;
                let Attended { out: values, lse: log, total } =
                    attend(plan, &q[row * width..][..width], reached, vector, score);
                let empty = total == R::zero();
                for (place, value) in out[row * width..][..width].iter_mut().zip(values) {
                    *place = if zero && empty { R::zero() } else { value };
                }
                lse[head * tokens + token] = if empty { empty_lse } else { log };
            }
        }
    }
    write(plan, &mut call.outputs[0], &out)?;
    call.outputs.get_mut(1).map_or(Ok(()), |buffer| write(plan, buffer, &lse))
}

/// One query over keys in parts, which are merged.
fn split<'a, R: Real>(
    call: &Invocation<'_>,
    plan: &Plan,
    q: &[R],
    count: usize,
    vector: impl Fn(usize) -> (&'a [R], &'a [R]),
) -> Attended<R> {
    let (scale, softcap) = (scale::<R>(plan, number(call, "scale"), q.len()), number(call, "softcap"));
    let splits = call.parameters.int("num_splits").unwrap_or(1).max(1) as usize;
    let part = count.div_ceil(splits).max(1);
    let one = |start: usize| {
        let length = part.min(count - start);
        attend(plan, q, length, |key| vector(start + key), |_, dot| Some(capped(dot * scale, softcap)))
    };
    let mut parts: Vec<Attended<R>> = (0..count).step_by(part).map(one).collect();
    if parts.len() == 1 {
        return parts.swap_remove(0);
    }
    // A split of nothing but −Inf has no weight, and 0/0 is not what it adds.
    for part in parts.iter_mut().filter(|part| part.total == R::zero()) {
        part.out.fill(R::zero());
    }
    let outs: Vec<&[R]> = parts.iter().map(|part| &part.out[..]).collect();
    let lses: Vec<R> = parts.iter().map(|part| part.lse).collect();
    merge(plan, &outs, &lses, q.len())
}

/// Attention of one query a sequence over keys that lie together.
pub(super) fn decode<R: Real>(call: &mut Invocation<'_>, plan: &Plan) -> Result<(), RunnerError> {
    let (q, k, v): (Vec<R>, Vec<R>, Vec<R>) = (input(call, "q")?, input(call, "k")?, input(call, "v")?);
    let lengths = whole(call, "seq_lens")?;
    let [key_heads, groups, keys, width] = ["H", "G", "N", "D"].map(|name| size(call, name));
    let (mut out, mut lse) = (Vec::with_capacity(q.len()), Vec::new());
    for (row, q) in q.chunks_exact(width).enumerate() {
        let (sequence, head) = (row / (key_heads * groups), row % (key_heads * groups));
        let start = (sequence * key_heads + key_head(plan, head, groups)) * keys;
        let vector = |key: usize| {
            let place = (start + key) * width;
            (&k[place..place + width], &v[place..place + width])
        };
        let count = match plan.mutation {
            Some(Mutation::Named("length ignored")) => keys,
            Some(Mutation::OffByOne) => (lengths[sequence] - 1).max(1),
            _ => lengths[sequence],
        };
        let attended = split(call, plan, q, count, vector);
        out.extend(attended.out);
        lse.push(attended.lse);
    }
    write(plan, &mut call.outputs[0], &out)?;
    call.outputs.get_mut(1).map_or(Ok(()), |buffer| write(plan, buffer, &lse))
}

/// Attention of one query a sequence over keys in pages.
pub(super) fn paged<R: Real>(call: &mut Invocation<'_>, plan: &Plan) -> Result<(), RunnerError> {
    let query: Vec<R> = input(call, "query")?;
    let (k, v): (Vec<R>, Vec<R>) = (input(call, "key_cache")?, input(call, "value_cache")?);
    let (lengths, tables) = (whole(call, "seq_lens")?, whole(call, "block_tables")?);
    let [key_heads, groups, pages, width] = ["H", "G", "L", "D"].map(|name| size(call, name));
    let page_size = size(call, "S");
    let mut out = Vec::with_capacity(query.len());
    for (row, q) in query.chunks_exact(width).enumerate() {
        let (sequence, head) = (row / (key_heads * groups), row % (key_heads * groups));
        let vector = |key: usize| {
            let (page, slot) = (key / page_size, key % page_size);
            let page = match plan.mutation {
                Some(Mutation::Named("pages taken by their place")) => page % size(call, "P"),
                _ => tables[sequence * pages + page],
            };
            let slot = if plan.mutation.is(Mutation::OffByOne) { (slot + 1) % page_size } else { slot };
            let place = ((page * page_size + slot) * key_heads + key_head(plan, head, groups)) * width;
            (&k[place..place + width], &v[place..place + width])
        };
        let count = match plan.mutation {
            Some(Mutation::Named("last page not masked")) => lengths[sequence].next_multiple_of(page_size),
            _ => lengths[sequence],
        };
        out.extend(split(call, plan, q, count, vector).out);
    }
    write(plan, &mut call.outputs[0], &out)
}

/// Attention with something added to the scores.
pub(super) fn biased<R: Real>(call: &mut Invocation<'_>, plan: &Plan) -> Result<(), RunnerError> {
    let (q, k, v): (Vec<R>, Vec<R>, Vec<R>) = (input(call, "query")?, input(call, "key")?, input(call, "value")?);
    let bias: Vec<R> = input(call, "attn_mask")?;
    let [key_heads, groups, keys, width] = ["H", "G", "N", "D"].map(|name| size(call, name));
    let (queries, heads) = (size(call, "M"), key_heads * groups);
    let scale = scale::<R>(plan, number(call, "scale"), width);
    let zero = call.parameters.flag("masked_rows_zero");
    let (mut out, mut lse) = (Vec::with_capacity(q.len()), Vec::new());
    for (row, q) in q.chunks_exact(width).enumerate() {
        let (batch, head) = (row / (heads * queries), row / queries % heads);
        let start = (batch * key_heads + key_head(plan, head, groups)) * keys;
        let vector = |key: usize| {
            let place = (start + key) * width;
            (&k[place..place + width], &v[place..place + width])
        };
        let moved = match plan.mutation {
            Some(Mutation::Named("bias of the first head")) => row % queries,
            _ => row % (heads * queries),
        };
        let score = |key: usize, dot: R| {
            let bias = bias[moved * keys + key];
            Some(match plan.mutation {
                Some(Mutation::Named("bias scaled")) => (dot + bias) * scale,
                _ => dot * scale + bias,
            })
        };
        let attended = attend(plan, q, keys, vector, score);
        let empty = zero && attended.total == R::zero();
        out.extend(attended.out.into_iter().map(|value| if empty { R::zero() } else { value }));
        lse.push(attended.lse);
    }
    write(plan, &mut call.outputs[0], &out)?;
    call.outputs.get_mut(1).map_or(Ok(()), |buffer| write(plan, buffer, &lse))
}

/// Partial results merged: a program for each row.
pub(super) fn merged<R: Real>(call: &mut Invocation<'_>, plan: &Plan) -> Result<(), RunnerError> {
    let (outs, lses): (Vec<R>, Vec<R>) = (input(call, "outs")?, input(call, "lses")?);
    let [splits, width] = ["S", "D"].map(|name| size(call, name));
    let rows = size(call, "T") * size(call, "H");
    let zero = call.parameters.flag("masked_rows_zero");
    let (mut out, mut lse) = (Vec::with_capacity(rows * width), Vec::with_capacity(rows));
    for row in 0..rows {
        let parts: Vec<&[R]> = (0..splits).map(|split| &outs[(split * rows + row) * width..][..width]).collect();
        let logs: Vec<R> = (0..splits).map(|split| lses[split * rows + row]).collect();
        let attended = merge(plan, &parts, &logs, width);
        let empty = zero && attended.total == R::zero();
        out.extend(attended.out.into_iter().map(|value| if empty { R::zero() } else { value }));
        lse.push(attended.lse);
    }
    write(plan, &mut call.outputs[0], &out)?;
    write(plan, &mut call.outputs[1], &lse)
}
