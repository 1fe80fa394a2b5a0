//! transpose, concat, pad, roll, flip and masked_fill.

use gpuemu_engine::runner::{Invocation, RunnerError};

use super::{handled, store_all};
use crate::implementations::{Family, ROUTES};
use crate::kernel;
use crate::kernels::{Plan, input, scaled, size};
use crate::memory::{positions, store};
use crate::mutation::{Mutated, Mutation};
use crate::real::Real;

const TILE: usize = 32;

const OTHER_STRIDE: &str = "the other dim as stride";
const NOT_WRAPPED: &str = "zeros in place of what wraps round";
const REMAINDER: &str = "remainder of a negative number";
const IN_TILES: &str = "reversed within tiles only";
const MULTIPLIED: &str = "multiplied by the mask";

pub(super) fn families() -> Vec<Family> {
    use Mutation::{Constant, DropFactor, DropTail, FlipSign, Named, OffByOne, ScaleOutput, SwapOperands};
    let family = |kernel, own: &[Mutation]| {
        let usual = [DropTail(TILE), ScaleOutput(1.01), ScaleOutput(1.001)];
        Family::new(kernel, &ROUTES, &[own, &usual[..]].concat())
    };
    vec![
        family(kernel!("transpose", transpose), &[SwapOperands, Named(OTHER_STRIDE)]),
        family(kernel!("concat", concat), &[SwapOperands, OffByOne]),
        family(kernel!("pad", pad), &[SwapOperands, DropFactor, OffByOne]),
        family(kernel!("roll", roll), &[FlipSign, OffByOne, Named(NOT_WRAPPED), Named(REMAINDER)]),
        family(kernel!("flip", flip), &[OffByOne, Named(IN_TILES), DropFactor]),
        family(kernel!("masked_fill", masked_fill), &[FlipSign, Named(MULTIPLIED), Constant(1.01)]),
    ]
}

/// Tile by tile through shared memory.
fn transpose<R: Real>(call: &mut Invocation<'_>, plan: &Plan) -> Result<(), RunnerError> {
    let values = input::<R>(call, "input")?;
    let (rows, columns) = (size(call, "M"), size(call, "N"));
    let output = &mut call.outputs[0];
    let places = positions(output);
    let (last_row, last_column) = (handled(plan, rows), handled(plan, columns));
    for matrix in 0..values.len() / (rows * columns).max(1) {
        let base = matrix * rows * columns;
        for top in (0..last_row).step_by(TILE) {
            for left in (0..last_column).step_by(TILE) {
                for row in top..(top + TILE).min(last_row) {
                    for column in left..(left + TILE).min(last_column) {
                        let from = if plan.mutation.named(OTHER_STRIDE) {
                            (row * rows + column) % (rows * columns)
                        } else {
                            row * columns + column
                        };
                        let to = if plan.mutation.is(Mutation::SwapOperands) { from } else { column * rows + row };
                        store(output, places[base + to], scaled(plan, values[base + from]))?;
                    }
                }
            }
        }
    }
    Ok(())
}

fn concat<R: Real>(call: &mut Invocation<'_>, plan: &Plan) -> Result<(), RunnerError> {
    let (a, b) = (input::<R>(call, "a")?, input::<R>(call, "b")?);
    let (first, second) = (size(call, "K"), size(call, "L"));
    let swapped = plan.mutation.is(Mutation::SwapOperands);
    let (left, right, middle, rest) = if swapped { (b, a, second, first) } else { (a, b, first, second) };
    let width = (first + second).max(1);
    let off = usize::from(plan.mutation.is(Mutation::OffByOne));
    store_all(plan, &mut call.outputs[0], |place| {
        let (row, column) = (place / width, place % width);
        if column < middle { left[row * middle + column] } else { right[row * rest + (column - middle + off) % rest] }
    })
}

fn pad<R: Real>(call: &mut Invocation<'_>, plan: &Plan) -> Result<(), RunnerError> {
    let values = input::<R>(call, "input")?;
    let (mut left, inner, mut right) = (size(call, "left"), size(call, "H"), size(call, "right"));
    let width = (left + inner + right).max(1);
    if plan.mutation.is(Mutation::SwapOperands) {
        (left, right) = (right, left);
    }
    let constant = call.parameters.float("value").unwrap_or(0.0);
    let constant = if plan.mutation.is(Mutation::DropFactor) { R::zero() } else { R::new(constant) };
    let shift = usize::from(plan.mutation.is(Mutation::OffByOne) && right > 0);
    store_all(plan, &mut call.outputs[0], |place| {
        let column = place % width;
        let inside = column >= left + shift && column < left + shift + inner;
        if inside { values[place / width * inner + column - left - shift] } else { constant }
    })
}

fn roll<R: Real>(call: &mut Invocation<'_>, plan: &Plan) -> Result<(), RunnerError> {
    let values = input::<R>(call, "input")?;
    let width = size(call, "H").max(1) as i64;
    let mut shift = call.parameters.int("shifts").unwrap_or(0);
    if plan.mutation.is(Mutation::FlipSign) {
        shift = -shift;
    }
    let off = i64::from(plan.mutation.is(Mutation::OffByOne));
    store_all(plan, &mut call.outputs[0], |place| {
        let column = place as i64 % width;
        let wanted = column - shift + off;
        let wrapped = !(0..width).contains(&wanted);
        if plan.mutation.named(NOT_WRAPPED) && wrapped {
            return R::zero();
        }
        let from = ((wanted % width) + width) % width;
        // C's remainder of a negative number is negative: clamped, it reads the first element.
        let from = if plan.mutation.named(REMAINDER) { (wanted % width).max(0) } else { from };
        values[(place as i64 - column + from) as usize]
    })
}

fn flip<R: Real>(call: &mut Invocation<'_>, plan: &Plan) -> Result<(), RunnerError> {
    let values = input::<R>(call, "input")?;
    let width = size(call, "H").max(1);
    store_all(plan, &mut call.outputs[0], |place| {
        let column = place % width;
        let mirrored = width - 1 - column;
        let from = if plan.mutation.is(Mutation::OffByOne) {
            (mirrored + 1) % width
        } else if plan.mutation.named(IN_TILES) {
            let tile = column / TILE * TILE;
            tile + (width - tile).min(TILE) - 1 - (column - tile)
        } else if plan.mutation.is(Mutation::DropFactor) {
            column
        } else {
            mirrored
        };
        values[place - column + from]
    })
}

fn masked_fill<R: Real>(call: &mut Invocation<'_>, plan: &Plan) -> Result<(), RunnerError> {
    let (values, mask) = (input::<R>(call, "input")?, input::<R>(call, "mask")?);
    let constant = R::new(call.parameters.float("value").unwrap_or(0.0) * plan.mutation.constant());
    let inverted = plan.mutation.is(Mutation::FlipSign);
    store_all(plan, &mut call.outputs[0], |place| {
        let masked = (mask[place] != R::zero()) != inverted;
        if plan.mutation.named(MULTIPLIED) {
            let keep = if masked { R::zero() } else { R::one() };
            return values[place] * keep + constant * (R::one() - keep);
        }
        if masked { constant } else { values[place] }
    })
}
