//! Row kernels with exponentials: one program per row, the whole row in registers.

use gpuemu_engine::runner::{Invocation, RunnerError};
use gpuemu_engine::schema::SummationOrder;

use super::{Plan, add_up, load_row, required, scaled};
use crate::memory::{Rows, load, positions, store};
use crate::mutation::{Mutated, Mutation};
use crate::real::Real;

/// The exponentials of a row relative to its maximum, and that maximum.
pub(crate) fn exponentials<R: Real>(plan: &Plan, lanes: &[R]) -> (Vec<R>, R) {
    let argument = R::new(plan.mutation.argument() * plan.mutation.constant());
    let mut maximum = lanes.iter().fold(R::lowest(), |most, x| most.larger(*x));
    if plan.mutation.is(Mutation::DropMaximum) {
        maximum = R::zero();
    }
    let log2e = R::new(std::f64::consts::LOG2_E);
    let terms = lanes.iter().map(|x| {
        if plan.style.folded {
            (*x * log2e - maximum * log2e).exp2(plan.style.exp)
        } else {
            ((*x - maximum) * argument).exp(plan.style.exp)
        }
    });
    (terms.collect(), maximum)
}

/// exp(x − m)/Σ.
pub fn softmax<R: Real>(call: &mut Invocation<'_>, plan: &Plan) -> Result<(), RunnerError> {
    let input = required(&call.inputs, 0)?;
    let rows = Rows::of(input);
    let output = &mut call.outputs[0];
    let out_rows = Rows::of(output);
    for row in 0..rows.starts.len() {
        let lanes = load_row(plan, input, &rows, row, R::lowest())?;
        let (terms, _) = exponentials(plan, &lanes);
        let total = add_up(plan, &terms);
        for (column, term) in terms.iter().take(rows.width).enumerate() {
            let value = term.over(total, plan.style.division);
            store(output, out_rows.at(row, column), scaled(plan, value))?;
        }
    }
    Ok(())
}

/// x − m − ln Σ.
pub fn log_softmax<R: Real>(call: &mut Invocation<'_>, plan: &Plan) -> Result<(), RunnerError> {
    let input = required(&call.inputs, 0)?;
    let rows = Rows::of(input);
    let output = &mut call.outputs[0];
    let out_rows = Rows::of(output);
    for row in 0..rows.starts.len() {
        let lanes = load_row(plan, input, &rows, row, R::lowest())?;
        let (terms, maximum) = exponentials(plan, &lanes);
        let log = add_up(plan, &terms).ln();
        for column in 0..rows.width {
            // The element itself is read anew: the row in registers may have been tampered with.
            let x: R = load(input, rows.at(row, column))?;
            let value = if plan.mutation.is(Mutation::DropFactor) { x - log } else { x - maximum - log };
            store(output, out_rows.at(row, column), scaled(plan, value))?;
        }
    }
    Ok(())
}

/// m + ln Σ − x[target], mixed with the mean over all classes; 0 where the target is ignored.
pub fn cross_entropy<R: Real>(call: &mut Invocation<'_>, plan: &Plan) -> Result<(), RunnerError> {
    let input = required(&call.inputs, 0)?;
    let target = required(&call.inputs, 1)?;
    let smoothing = call.parameters.float("label_smoothing").unwrap_or(0.0);
    let ignored = call.parameters.int("ignore_index").unwrap_or(-100) as f64;
    let (rows, target_positions) = (Rows::of(input), positions(target));
    let output = &mut call.outputs[0];
    let out_positions = positions(output);
    for row in 0..rows.starts.len() {
        let class: f64 = load(target, target_positions[row])?;
        if class == ignored && !plan.mutation.named("ignored rows counted") {
            store(output, out_positions[row], R::zero())?;
            continue;
        }
        let lanes = load_row(plan, input, &rows, row, R::lowest())?;
        let (terms, maximum) = exponentials(plan, &lanes);
        let log = add_up(plan, &terms).ln();
        let shift = usize::from(plan.mutation.is(Mutation::OffByOne));
        let chosen: R = load(input, rows.at(row, (class as usize + shift) % rows.width.max(1)))?;
        let mut value = if plan.mutation.is(Mutation::DropFactor) { log - chosen } else { (maximum + log) - chosen };
        if smoothing > 0.0 {
            let others =
                if plan.mutation.named("smoothing leaves the target out") { rows.width - 1 } else { rows.width };
            let share = R::new(smoothing / others.max(1) as f64);
            let mut logits: Vec<R> = Vec::with_capacity(rows.width);
            for column in 0..rows.width {
                if others == rows.width || column != class as usize {
                    logits.push(load(input, rows.at(row, column))?);
                }
            }
            value = R::new(1.0 - smoothing) * value + smooth(plan, &logits, share, maximum + log);
        }
        store(output, out_positions[row], scaled(plan, value))?;
    }
    Ok(())
}

/// A share of lse − x for every logit: of the log-probabilities, or of the logits with one product for the rest.
pub fn smooth<R: Real>(plan: &Plan, logits: &[R], share: R, lse: R) -> R {
    if plan.style.order == SummationOrder::Sequential {
        let terms: Vec<R> = logits.iter().map(|x| lse - *x).collect();
        return share * add_up(plan, &terms);
    }
    let terms: Vec<R> = logits.iter().map(|x| share * *x).collect();
    share * R::new(logits.len() as f64) * lse - add_up(plan, &terms)
}
