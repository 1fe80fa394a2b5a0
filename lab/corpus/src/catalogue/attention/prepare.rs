//! What prepares the inputs of attention: rotations with given angles, and writing into a cache.

use gpuemu_engine::runner::{Invocation, RunnerError};

use crate::kernels::{Plan, input, read, size, write};
use crate::mutation::{Mutated, Mutation};
use crate::real::Real;
use crate::style::ExpRoute;

/// x·cos ∓ y·sin in one of the ways in which kernels add the products.
fn rotate<R: Real>(plan: &Plan, x: R, cos: R, y: R, sin: R) -> R {
    let sin = if plan.mutation.is(Mutation::FlipSign) { -sin } else { sin };
    match plan.style.exp {
        ExpRoute::Direct => x * cos + y * sin,
        // A fused multiply-add rounds once.
        _ => R::new((x * cos).value() + y.value() * sin.value()),
    }
}

/// Cosines and sines for every column: a program for each row.
pub(super) fn cached<R: Real>(call: &mut Invocation<'_>, plan: &Plan) -> Result<(), RunnerError> {
    let [q, cos, sin] = ["q", "cos", "sin"].map(|name| input::<R>(call, name));
    let (q, cos, sin) = (q?, cos?, sin?);
    let [heads, positions, pairs] = ["H", "M", "P"].map(|name| size(call, name));
    let interleaved = call.parameters.flag("interleaved") != plan.mutation.is(Mutation::SwapOperands);
    let width = 2 * pairs;
    let mut out = vec![R::zero(); q.len()];
    for row in 0..q.len().checked_div(width).unwrap_or(0) {
        let position = match plan.mutation {
            Some(Mutation::OffByOne) => (row + 1) % positions,
            _ => row % positions,
        };
        let angles = (row / (heads * positions) * positions + position) * width;
        for pair in 0..pairs {
            let (first, second) = if interleaved { (2 * pair, 2 * pair + 1) } else { (pair, pair + pairs) };
            let (x, y) = (q[row * width + first], q[row * width + second]);
            out[row * width + first] = rotate(plan, x, cos[angles + first], -y, sin[angles + first]);
            out[row * width + second] = rotate(plan, y, cos[angles + second], x, sin[angles + second]);
        }
    }
    write(plan, &mut call.outputs[0], &out)
}

/// Query and key rotated in place, angles from a table.
pub(super) fn in_place<R: Real>(call: &mut Invocation<'_>, plan: &Plan) -> Result<(), RunnerError> {
    let positions = input::<f64>(call, "positions")?;
    let table: Vec<R> = input(call, "cos_sin_cache")?;
    let [rows, pairs, rest] = ["P", "R", "E"].map(|name| size(call, name));
    let neox = call.parameters.flag("is_neox_style") != plan.mutation.is(Mutation::SwapOperands);
    let width = 2 * pairs + rest;
    for (output, heads) in [(0, size(call, "N")), (1, size(call, "H"))] {
        let mut values: Vec<R> = read(&call.outputs[output])?;
        for (row, head) in values.chunks_exact_mut(width.max(1)).enumerate() {
            let token = row / heads.max(1);
            let position = match plan.mutation {
                Some(Mutation::Named("place in place of position")) => token % rows,
                Some(Mutation::OffByOne) => (positions[token] as usize + 1) % rows,
                _ => positions[token] as usize,
            };
            let angles = &table[position * 2 * pairs..][..2 * pairs];
            for pair in 0..pairs {
                let (first, second) = if neox { (pair, pair + pairs) } else { (2 * pair, 2 * pair + 1) };
                let (x, y) = (head[first], head[second]);
                let (cos, sin) = (angles[pair], angles[pairs + pair]);
                head[first] = rotate(plan, x, cos, -y, sin);
                let x = if plan.mutation.named("first half read after it is overwritten") { head[first] } else { x };
                head[second] = rotate(plan, y, cos, x, sin);
            }
        }
        write(plan, &mut call.outputs[output], &values)?;
    }
    Ok(())
}

/// Keys and values into their slots: a program for each token.
pub(super) fn cache<R: Real>(call: &mut Invocation<'_>, plan: &Plan) -> Result<(), RunnerError> {
    let slots = input::<f64>(call, "slot_mapping")?;
    let swapped = plan.mutation.is(Mutation::SwapOperands);
    let (pages, page, row) = (size(call, "P"), size(call, "S"), size(call, "H") * size(call, "D"));
    for (output, name) in ["key", "value"].into_iter().enumerate() {
        let tokens: Vec<R> = input(call, name)?;
        let output = if swapped { 1 - output } else { output };
        let mut values: Vec<R> = read(&call.outputs[output])?;
        for (token, slot) in slots.iter().enumerate() {
            let slot = match plan.mutation {
                Some(Mutation::Named("tokens taken by place")) => token,
                Some(Mutation::OffByOne) => (*slot as usize + 1) % (pages * page),
                Some(Mutation::Named("page and row swapped")) => {
                    (*slot as usize % page * pages + *slot as usize / page) % (pages * page)
                }
                _ => *slot as usize,
            };
            values[slot * row..][..row].copy_from_slice(&tokens[token * row..][..row]);
        }
        write(plan, &mut call.outputs[output], &values)?;
    }
    Ok(())
}
