//! embedding, gather, index_select, scatter and index_copy.

use gpuemu_engine::runner::{Invocation, RunnerError};

use super::{handled, indices, next, store_all};
use crate::implementations::{Family, ROUTES};
use crate::kernel;
use crate::kernels::{Plan, input, read, size, write};
use crate::mutation::{Mutated, Mutation};
use crate::real::Real;

const PADDING_ZEROED: &str = "the row of the padding index is zero";
const FIRST_ROW: &str = "the first row's indices for all";
const IN_ORDER: &str = "rows in order whatever the index";
const CLEARED: &str = "what no index names is cleared";
const BACKWARDS: &str = "index applied to the source";

pub(super) fn families() -> Vec<Family> {
    use Mutation::{DropTail, Named, OffByOne, ScaleOutput};
    let usual = [OffByOne, DropTail(32), DropTail(8), ScaleOutput(1.01), ScaleOutput(1.001)];
    let with = |own: &str| {
        let mut mutants = usual.to_vec();
        mutants.extend(NAMES.iter().filter(|name| **name == own).map(|name| Named(name)));
        mutants
    };
    let mut scattered = with(CLEARED);
    scattered.push(Named(BACKWARDS));
    vec![
        Family::new(kernel!("embedding", embedding), &ROUTES, &with(PADDING_ZEROED)),
        Family::new(kernel!("gather", gather), &ROUTES, &with(FIRST_ROW)),
        Family::new(kernel!("index_select", index_select), &ROUTES, &with(IN_ORDER)),
        Family::new(kernel!("scatter", scatter), &ROUTES, &scattered),
        Family::new(kernel!("index_copy", index_copy), &ROUTES, &scattered),
    ]
}

const NAMES: [&str; 4] = [PADDING_ZEROED, FIRST_ROW, IN_ORDER, CLEARED];

fn embedding<R: Real>(call: &mut Invocation<'_>, plan: &Plan) -> Result<(), RunnerError> {
    let (rows, table) = (indices(call, "indices")?, input::<R>(call, "weight")?);
    let (height, width) = (size(call, "V"), size(call, "D").max(1));
    let zeroed = if plan.mutation.named(PADDING_ZEROED) { call.parameters.int("padding_idx") } else { None };
    store_all(plan, &mut call.outputs[0], |place| {
        let row = rows[place / width];
        let row = if plan.mutation.is(Mutation::OffByOne) { next(row, height) } else { row };
        if zeroed == Some(row as i64) { R::zero() } else { table[row * width + place % width] }
    })
}

fn gather<R: Real>(call: &mut Invocation<'_>, plan: &Plan) -> Result<(), RunnerError> {
    let (values, columns) = (input::<R>(call, "input")?, indices(call, "index")?);
    let (width, taken) = (size(call, "N"), size(call, "K").max(1));
    store_all(plan, &mut call.outputs[0], |place| {
        let column = if plan.mutation.named(FIRST_ROW) { columns[place % taken] } else { columns[place] };
        let column = if plan.mutation.is(Mutation::OffByOne) { next(column, width) } else { column };
        values[place / taken * width + column]
    })
}

fn index_select<R: Real>(call: &mut Invocation<'_>, plan: &Plan) -> Result<(), RunnerError> {
    let (values, rows) = (input::<R>(call, "input")?, indices(call, "index")?);
    let (height, width) = (size(call, "M"), size(call, "N").max(1));
    store_all(plan, &mut call.outputs[0], |place| {
        let row = if plan.mutation.named(IN_ORDER) { place / width % height } else { rows[place / width] };
        let row = if plan.mutation.is(Mutation::OffByOne) { next(row, height) } else { row };
        values[row * width + place % width]
    })
}

/// One program for each row: its elements go where the indices say.
fn scatter<R: Real>(call: &mut Invocation<'_>, plan: &Plan) -> Result<(), RunnerError> {
    let (columns, source) = (indices(call, "index")?, input::<R>(call, "src")?);
    let (rows, taken) = (size(call, "M"), size(call, "K"));
    let width = taken + size(call, "L");
    let output = &mut call.outputs[0];
    let mut values: Vec<R> = read(output)?;
    if plan.mutation.named(CLEARED) {
        values.fill(R::zero());
    }
    for row in 0..rows {
        for place in 0..handled(plan, taken) {
            let column = columns[row * taken + place];
            let column = if plan.mutation.is(Mutation::OffByOne) { next(column, width) } else { column };
            if plan.mutation.named(BACKWARDS) {
                values[row * width + place] = source[row * taken + column.min(taken - 1)];
            } else {
                values[row * width + column] = source[row * taken + place];
            }
        }
    }
    write(plan, output, &values)
}

/// One program for each row of the source.
fn index_copy<R: Real>(call: &mut Invocation<'_>, plan: &Plan) -> Result<(), RunnerError> {
    let (rows, source) = (indices(call, "index")?, input::<R>(call, "source")?);
    let (taken, width) = (size(call, "K"), size(call, "N"));
    let height = taken + size(call, "L");
    let output = &mut call.outputs[0];
    let mut values: Vec<R> = read(output)?;
    if plan.mutation.named(CLEARED) {
        values.fill(R::zero());
    }
    for (place, row) in rows.iter().enumerate() {
        let row = if plan.mutation.is(Mutation::OffByOne) { next(*row, height) } else { *row };
        let (to, from) = if plan.mutation.named(BACKWARDS) { (place, row.min(taken - 1)) } else { (row, place) };
        for column in 0..handled(plan, width) {
            values[to * width + column] = source[from * width + column];
        }
    }
    write(plan, output, &values)
}
