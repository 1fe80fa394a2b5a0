//! Kernels that move, choose and count by index.

mod accumulate;
mod count;
mod lookup;
mod movement;
mod order;

use gpuemu_engine::runner::{Buffer, Invocation, RunnerError};

use crate::implementations::Family;
use crate::kernels::{Plan, input, scaled};
use crate::memory::{positions, store};
use crate::mutation::Mutation;
use crate::real::Real;

/// The ops of this group and their kernels.
pub fn families() -> Vec<Family> {
    let families =
        [accumulate::families(), count::families(), lookup::families(), movement::families(), order::families()];
    families.into_iter().flatten().collect()
}

/// An input of whole numbers.
pub(super) fn indices(call: &Invocation<'_>, name: &str) -> Result<Vec<usize>, RunnerError> {
    Ok(input::<f64>(call, name)?.into_iter().map(|value| value as usize).collect())
}

/// Elements that a kernel still handles where the last, partial tile is what it drops.
pub(super) fn handled(plan: &Plan, count: usize) -> usize {
    match plan.mutation {
        Some(Mutation::DropTail(tile)) if count > tile => count / tile * tile,
        _ => count,
    }
}

/// Stores every element of an output, each by a program of its own.
pub(super) fn store_all<R: Real>(
    plan: &Plan,
    output: &mut Buffer,
    element: impl Fn(usize) -> R,
) -> Result<(), RunnerError> {
    let places = positions(output);
    let last = handled(plan, places.len());
    for (block, lanes) in places[..last].chunks(plan.style.block.max(1)).enumerate() {
        for (lane, place) in lanes.iter().enumerate() {
            store(output, *place, scaled(plan, element(block * plan.style.block.max(1) + lane)))?;
        }
    }
    Ok(())
}

/// An index one too high; the last one goes to the first.
pub(super) fn next(index: usize, count: usize) -> usize {
    if index + 1 < count { index + 1 } else { 0 }
}
