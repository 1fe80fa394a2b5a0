//! moe_permute, moe_unpermute and moe_align_block_size.

use gpuemu_engine::runner::{Invocation, RunnerError};
use gpuemu_tensor::DType;

use crate::catalogue::indexing::{indices, next};
use crate::implementations::{Family, ORDERS, ROUTES};
use crate::kernel;
use crate::kernels::{Plan, add_up, input, size, write};
use crate::mutation::{Mutated, Mutation};
use crate::real::Real;

const ENTRY_AS_TOKEN: &str = "entry taken for the token";
const ORDER_REVERSED: &str = "order within an expert reversed";
const INCLUSIVE: &str = "inclusive offsets";
const BACKWARDS: &str = "permutation in the wrong direction";
const ROW_WEIGHTS: &str = "weights in the order of the rows";
const EVERY_EXPERT: &str = "a block for experts without tokens";
const ONE_MORE: &str = "one more block where the last is full";
const UNPADDED: &str = "padding is 0";

pub(super) fn families() -> Vec<Family> {
    use Mutation::{DropFactor, Named, NarrowAccumulator, OffByOne, ScaleOutput, SkipElement};
    let permuted = [Named(ENTRY_AS_TOKEN), Named(ORDER_REVERSED), Named(INCLUSIVE), OffByOne, ScaleOutput(1.01)];
    let combined = [
        Named(BACKWARDS),
        Named(ROW_WEIGHTS),
        DropFactor,
        SkipElement,
        NarrowAccumulator(DType::BF16),
        ScaleOutput(1.01),
        ScaleOutput(1.001),
    ];
    let aligned = [Named(EVERY_EXPERT), Named(ONE_MORE), Named(ORDER_REVERSED), Named(UNPADDED)];
    vec![
        Family::new(kernel!("moe_permute", permute), &ROUTES, &permuted),
        Family::new(kernel!("moe_unpermute", unpermute), &ORDERS, &combined),
        Family::new(kernel!("moe_align_block_size", align), &ROUTES, &aligned),
    ]
}

/// Counts for each expert, their prefix sums, and the entries put in place: a counting sort.
struct CountingSort {
    offsets: Vec<usize>,
    order: Vec<usize>,
}

impl CountingSort {
    fn of(plan: &Plan, ids: &[usize], experts: usize) -> Self {
        let mut offsets = vec![0; experts + 1];
        ids.iter().for_each(|expert| offsets[expert + 1] += 1);
        for expert in 0..experts {
            offsets[expert + 1] += offsets[expert];
        }
        let mut cursors = offsets.clone();
        let mut order = vec![0; ids.len()];
        for (entry, expert) in ids.iter().enumerate() {
            let backwards = offsets[*expert] + offsets[expert + 1] - 1 - cursors[*expert];
            let place = if plan.mutation.named(ORDER_REVERSED) { backwards } else { cursors[*expert] };
            order[place] = entry;
            cursors[*expert] += 1;
        }
        Self { offsets, order }
    }
}

fn numbers<R: Real>(values: &[usize]) -> Vec<R> {
    values.iter().map(|value| R::new(*value as f64)).collect()
}

fn permute<R: Real>(call: &mut Invocation<'_>, plan: &Plan) -> Result<(), RunnerError> {
    let (hidden, mut ids) = (input::<R>(call, "hidden")?, indices(call, "topk_ids")?);
    let (tokens, width, choices) = (size(call, "T"), size(call, "D"), size(call, "K").max(1));
    let experts = size(call, "num_experts");
    if plan.mutation.is(Mutation::OffByOne) {
        ids.iter_mut().for_each(|expert| *expert = next(*expert, experts));
    }
    let sorted = CountingSort::of(plan, &ids, experts);
    let mut permuted = Vec::with_capacity(ids.len() * width);
    for entry in &sorted.order {
        let token = if plan.mutation.named(ENTRY_AS_TOKEN) { *entry % tokens } else { entry / choices };
        permuted.extend_from_slice(&hidden[token * width..(token + 1) * width]);
    }
    let mut offsets = sorted.offsets;
    if plan.mutation.named(INCLUSIVE) {
        offsets.rotate_left(1);
    }
    write(plan, &mut call.outputs[0], &permuted)?;
    write(plan, &mut call.outputs[1], &numbers::<R>(&sorted.order))?;
    write(plan, &mut call.outputs[2], &numbers::<R>(&offsets))
}

fn unpermute<R: Real>(call: &mut Invocation<'_>, plan: &Plan) -> Result<(), RunnerError> {
    let (permuted, row_id) = (input::<R>(call, "permuted")?, indices(call, "row_id")?);
    let weights = input::<R>(call, "topk_weights")?;
    let (tokens, width, choices) = (size(call, "T"), size(call, "D"), size(call, "K"));
    // One pass over the permuted rows: each is put where its token will add it up.
    let mut terms = vec![vec![R::zero(); choices]; tokens * width];
    for (row, entry) in row_id.iter().enumerate() {
        let (from, to) = if plan.mutation.named(BACKWARDS) { (*entry, row) } else { (row, *entry) };
        let (token, choice) = (to / choices, to % choices);
        if plan.mutation.is(Mutation::SkipElement) && choice + 1 == choices && choices > 1 {
            continue;
        }
        let weight = if plan.mutation.named(ROW_WEIGHTS) { weights[row] } else { weights[to] };
        for column in 0..width {
            let x = permuted[from * width + column];
            terms[token * width + column][choice] = if plan.mutation.is(Mutation::DropFactor) { x } else { weight * x };
        }
    }
    let totals: Vec<R> = terms.iter().map(|terms| add_up(plan, terms)).collect();
    write(plan, &mut call.outputs[0], &totals)
}

fn align<R: Real>(call: &mut Invocation<'_>, plan: &Plan) -> Result<(), RunnerError> {
    let ids = indices(call, "topk_ids")?;
    let (experts, block) = (size(call, "num_experts"), size(call, "block_size").max(1));
    let sorted = CountingSort::of(plan, &ids, experts);
    let padding = if plan.mutation.named(UNPADDED) { 0 } else { ids.len() };
    let mut slots = vec![padding; ids.len() + experts * (block - 1)];
    let mut blocks = vec![0; slots.len().div_ceil(block)];
    let mut begin = 0;
    for expert in 0..experts {
        let (first, last) = (sorted.offsets[expert], sorted.offsets[expert + 1]);
        let mut taken = (last - first).div_ceil(block);
        if plan.mutation.named(EVERY_EXPERT) {
            taken = taken.max(1);
        }
        if plan.mutation.named(ONE_MORE) && (last - first).is_multiple_of(block) && last > first {
            taken += 1;
        }
        for (slot, entry) in sorted.order[first..last].iter().enumerate() {
            if let Some(place) = slots.get_mut(begin + slot) {
                *place = *entry;
            }
        }
        blocks.iter_mut().skip(begin / block).take(taken).for_each(|place| *place = expert);
        begin += taken * block;
    }
    write(plan, &mut call.outputs[0], &numbers::<R>(&slots))?;
    write(plan, &mut call.outputs[1], &numbers::<R>(&blocks))?;
    write(plan, &mut call.outputs[2], &[R::new(begin as f64)])
}
