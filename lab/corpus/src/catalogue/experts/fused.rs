//! fused_moe: one program for each token and expert, the results added up at the end.

use gpuemu_engine::runner::{Invocation, RunnerError};
use gpuemu_tensor::DType;

use crate::catalogue::indexing::{handled, indices};
use crate::implementations::{Family, ORDERS};
use crate::kernel;
use crate::kernels::{Plan, add_up, input, size, write};
use crate::mutation::{Mutated, Mutation};
use crate::real::Real;
use crate::style::Style;

const WEIGHT_TWICE: &str = "weight applied twice";
const FIRST_EXPERT: &str = "the token's first expert for all";

pub(super) fn families() -> Vec<Family> {
    use Mutation::{
        DropFactor, DropTail, Named, NarrowAccumulator, Overwrite, ScaleArgument, ScaleOutput, SkipElement,
        SwapOperands,
    };
    let mut styles = ORDERS.to_vec();
    styles.push(Style { intermediate: Some(DType::F16), ..ORDERS[2] });
    styles.push(Style { intermediate: Some(DType::BF16), ..ORDERS[3] });
    let mutants = [
        SwapOperands,
        DropFactor,
        Named(WEIGHT_TWICE),
        Named(FIRST_EXPERT),
        Overwrite,
        SkipElement,
        DropTail(8),
        ScaleArgument(1.702),
        NarrowAccumulator(DType::BF16),
        ScaleOutput(1.01),
        ScaleOutput(1.001),
    ];
    vec![Family::new(kernel!("fused_moe", fused_moe), &styles, &mutants)]
}

fn stored<R: Real>(plan: &Plan, value: R) -> R {
    match plan.style.intermediate {
        Some(dtype) => R::new(dtype.decode(dtype.encode(value.value()))),
        None => value,
    }
}

/// A dot product over the elements that take part.
fn product<R: Real>(plan: &Plan, left: &[R], right: &[R]) -> R {
    let count = handled(plan, left.len());
    let skipped = plan.mutation.is(Mutation::SkipElement) && left.len() > 1;
    let taking_part = (0..count).filter(|index| !(skipped && *index == left.len() / 2));
    let terms: Vec<R> = taking_part.map(|index| left[index] * right[index]).collect();
    add_up(plan, &terms)
}

fn fused_moe<R: Real>(call: &mut Invocation<'_>, plan: &Plan) -> Result<(), RunnerError> {
    let (hidden, w1, w2) = (input::<R>(call, "hidden")?, input::<R>(call, "w1")?, input::<R>(call, "w2")?);
    let (weights, ids) = (input::<R>(call, "topk_weights")?, indices(call, "topk_ids")?);
    let (tokens, width) = (size(call, "T"), size(call, "D"));
    let (inner, choices) = (size(call, "I"), size(call, "K"));
    let mut out = Vec::with_capacity(tokens * width);
    for token in 0..tokens {
        let x = &hidden[token * width..(token + 1) * width];
        let mut results = vec![Vec::with_capacity(choices); width];
        for choice in 0..choices {
            let slot = token * choices + choice;
            let expert = if plan.mutation.named(FIRST_EXPERT) { ids[token * choices] } else { ids[slot] };
            let row = |row: usize| &w1[(expert * 2 * inner + row) * width..][..width];
            let mut gated = Vec::with_capacity(inner);
            for index in 0..inner {
                let mut gate = stored(plan, product(plan, row(index), x));
                let mut up = stored(plan, product(plan, row(inner + index), x));
                if plan.mutation.is(Mutation::SwapOperands) {
                    (gate, up) = (up, gate);
                }
                let exponential = (-(gate * R::new(plan.mutation.argument()))).exp(plan.style.exp);
                let activated = gate.over(R::one() + exponential, plan.style.division);
                gated.push(stored(plan, activated * up));
            }
            for (column, results) in results.iter_mut().enumerate() {
                let down = product(plan, &gated, &w2[(expert * width + column) * inner..][..inner]);
                let weighted = match plan.mutation {
                    Some(Mutation::DropFactor) => down,
                    _ if plan.mutation.named(WEIGHT_TWICE) => down * weights[slot] * weights[slot],
                    _ => down * weights[slot],
                };
                results.push(stored(plan, weighted));
            }
        }
        for results in &results {
            let last = results.last().copied().unwrap_or(R::zero());
            out.push(if plan.mutation.is(Mutation::Overwrite) { last } else { add_up(plan, results) });
        }
    }
    write(plan, &mut call.outputs[0], &out)
}
