//! Attention with an online softmax over blocks of keys.

use gpuemu_engine::runner::{Invocation, RunnerError};
use gpuemu_engine::schema::SummationOrder;

use super::attention::{Setting, finite_maximum, round_weight};
use super::{Plan, scaled};
use crate::memory::store;
use crate::mutation::{Mutated, Mutation};
use crate::real::Real;
use crate::summation::sum;

/// The state of one query row.
struct Online<R> {
    maximum: R,
    total: R,
    accumulator: Vec<R>,
}

/// softmax(q kᵀ·scale) v, block by block.
pub fn flash<R: Real>(call: &mut Invocation<'_>, plan: &Plan) -> Result<(), RunnerError> {
    let setting = Setting::<R>::of(&call.inputs, call.schema, call.parameters, plan)?;
    let block = match plan.style.order {
        SummationOrder::Online(size) => size.max(1),
        _ => 32,
    };
    for batch in 0..setting.q.shape()[0] {
        for head in 0..setting.heads {
            for query in 0..setting.queries {
                let state = row(&setting, plan, (batch, head, query), block)?;
                let row = (batch * setting.heads + head) * setting.queries + query;
                for (column, accumulated) in state.accumulator.iter().enumerate() {
                    let mut value = accumulated.over(state.total, plan.style.division);
                    if setting.zero_rows && state.total == R::zero() {
                        value = R::zero();
                    }
                    let output = &mut call.outputs[0];
                    store(output, (output.offset() + row * setting.width + column) as isize, scaled(plan, value))?;
                }
                if let Some(lse) = call.outputs.get_mut(1) {
                    store(lse, (lse.offset() + row) as isize, finite_maximum(state.maximum) + state.total.ln())?;
                }
            }
        }
    }
    Ok(())
}

fn row<R: Real>(
    setting: &Setting<'_, R>,
    plan: &Plan,
    (batch, head, query): (usize, usize, usize),
    block: usize,
) -> Result<Online<R>, RunnerError> {
    let key_head = setting.key_head(plan, head);
    let q: Vec<R> = Setting::vector(setting.q, batch, head, query)?;
    let mut state = Online { maximum: R::lowest(), total: R::zero(), accumulator: vec![R::zero(); setting.width] };
    for start in (0..setting.keys).step_by(block) {
        let end = if plan.mutation.is(Mutation::DropMask) { start + block } else { (start + block).min(setting.keys) };
        if matches!(plan.mutation, Some(Mutation::DropTail(_))) && end - start < block && start > 0 {
            continue;
        }
        let (mut scores, mut values) = (Vec::with_capacity(block), Vec::with_capacity(block));
        for key in start..end {
            let k: Vec<R> = Setting::vector(setting.k, batch, key_head, key)?;
            values.push(Setting::vector(setting.v, batch, key_head, key)?);
            let products: Vec<R> = q.iter().zip(&k).map(|(x, y)| *x * *y).collect();
            let score = setting.score(sum(&products, SummationOrder::Pairwise, None));
            let visible = key >= setting.keys || setting.sees(plan, query, key)?;
            scores.push(if visible { score } else { R::lowest() });
        }
        if let Some(Mutation::PadZero(_)) = plan.mutation {
            scores.resize(block, R::zero());
        }
        let largest = scores.iter().fold(state.maximum, |most, score| most.larger(*score));
        let reference = finite_maximum(largest);
        let weights: Vec<R> = scores.iter().map(|score| (*score - reference).exp(plan.style.exp)).collect();
        let rescale =
            if state.maximum == R::lowest() { R::zero() } else { (state.maximum - reference).exp(plan.style.exp) };
        state.total = state.total * rescale + sum(&weights, SummationOrder::Pairwise, None);
        let kept = if plan.mutation.is(Mutation::DropRescale) { R::one() } else { rescale };
        for (column, accumulator) in state.accumulator.iter_mut().enumerate() {
            let terms: Vec<R> = weights
                .iter()
                .zip(&values)
                .map(|(weight, vector)| round_weight(*weight, plan.style.intermediate) * vector[column])
                .collect();
            let added = sum(&terms, SummationOrder::Pairwise, None);
            *accumulator = if plan.mutation.is(Mutation::Overwrite) { added } else { *accumulator * kept + added };
        }
        state.maximum = largest;
    }
    Ok(state)
}
