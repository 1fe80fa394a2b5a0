//! sum, mean, max and cumsum along the last dim.

use gpuemu_engine::runner::{Invocation, RunnerError};
use gpuemu_engine::schema::SummationOrder;

use super::{Plan, add_up, load_row, required, scaled};
use crate::memory::{Rows, positions, store};
use crate::mutation::{Mutated, Mutation};
use crate::real::Real;

/// One number for each row: `formula` gets the row in registers, and its width.
pub(crate) fn reduce<R: Real>(
    call: &mut Invocation<'_>,
    plan: &Plan,
    neutral: R,
    formula: impl Fn(&[R], usize) -> R,
) -> Result<(), RunnerError> {
    let input = required(&call.inputs, 0)?;
    let rows = Rows::of(input);
    let output = &mut call.outputs[0];
    let out_positions = positions(output);
    for (row, position) in out_positions.iter().enumerate() {
        let lanes = load_row(plan, input, &rows, row, neutral)?;
        store(output, *position, scaled(plan, formula(&lanes, rows.width)))?;
    }
    Ok(())
}

/// Σx.
pub fn sum<R: Real>(call: &mut Invocation<'_>, plan: &Plan) -> Result<(), RunnerError> {
    reduce(call, plan, R::zero(), |lanes: &[R], _| add_up(plan, lanes))
}

/// Σx/H.
pub fn mean<R: Real>(call: &mut Invocation<'_>, plan: &Plan) -> Result<(), RunnerError> {
    reduce(call, plan, R::zero(), |lanes: &[R], width| {
        let count = match plan.mutation {
            // The padded width as divisor is what padding does to a mean.
            Some(Mutation::PadZero(_)) => lanes.len(),
            Some(Mutation::Unbiased) => width.saturating_sub(1).max(1),
            _ => width,
        };
        add_up(plan, lanes).over(R::new(count as f64), plan.style.division)
    })
}

pub fn max<R: Real>(call: &mut Invocation<'_>, plan: &Plan) -> Result<(), RunnerError> {
    let propagate = call.parameters.flag("propagate_nan");
    let from_zero = plan.mutation.is(Mutation::Overwrite);
    reduce(call, plan, R::lowest(), |lanes: &[R], width| {
        let (mut largest, mut nans) = (if from_zero { R::zero() } else { R::lowest() }, 0);
        for x in lanes {
            nans += usize::from(x.is_nan());
            largest = largest.larger(*x);
        }
        let poisoned = (propagate && nans > 0) || nans >= width;
        if poisoned { R::new(f64::NAN) } else { largest }
    })
}

/// Running sums: in sequence, or tile by tile with a carry; from the other end, and without the element itself, where
/// that is asked for.
pub fn cumsum<R: Real>(call: &mut Invocation<'_>, plan: &Plan) -> Result<(), RunnerError> {
    let input = required(&call.inputs, 0)?;
    let rows = Rows::of(input);
    let output = &mut call.outputs[0];
    let out_rows = Rows::of(output);
    let tile = match plan.style.order {
        SummationOrder::Tile(size) => size,
        SummationOrder::Split(parts) => rows.width.div_ceil(parts.max(1)).max(1),
        _ => usize::MAX,
    };
    let exclusive = call.parameters.flag("exclusive") != plan.mutation.is(Mutation::OffByOne);
    let reverse = call.parameters.flag("reverse") != plan.mutation.named("the other direction");
    // A scan of tiles gives inclusive sums, of which the element is taken off again.
    let subtracts = exclusive && tile != usize::MAX;
    for row in 0..rows.starts.len() {
        let mut lanes: Vec<R> = load_row(plan, input, &rows, row, R::zero())?;
        lanes.truncate(rows.width);
        if reverse {
            lanes.reverse();
        }
        let mut carry = R::zero();
        for (index, chunk) in lanes.chunks(tile).enumerate() {
            let mut running = R::zero();
            for (place, x) in chunk.iter().enumerate() {
                let before = running;
                running = narrow(plan, running + *x);
                let value =
                    if subtracts { (carry + running) - *x } else { carry + if exclusive { before } else { running } };
                let column = index * tile.min(rows.width) + place;
                let column = if reverse { rows.width - 1 - column } else { column };
                store(output, out_rows.at(row, column), scaled(plan, value))?;
            }
            carry = if plan.mutation.is(Mutation::Overwrite) { running } else { narrow(plan, carry + running) };
        }
    }
    Ok(())
}

fn narrow<R: Real>(plan: &Plan, value: R) -> R {
    match plan.mutation {
        Some(Mutation::NarrowAccumulator(dtype)) => R::new(dtype.decode(dtype.encode(value.value()))),
        _ => value,
    }
}
