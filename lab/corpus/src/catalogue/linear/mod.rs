//! Products of matrices: batched, grouped, with an epilogue, quantised.

mod dense;
mod layer;
mod narrow;
mod weights;

use gpuemu_engine::schema::SummationOrder;
use gpuemu_tensor::DType;

use crate::implementations::Family;
use crate::kernels::{Plan, add_up};
use crate::mutation::{Mutated, Mutation};
use crate::real::Real;
use crate::style::Style;

/// The ops of this group and their kernels.
pub fn families() -> Vec<Family> {
    let mut families = dense::families();
    families.extend(layer::families());
    families.extend(narrow::families());
    families.extend(weights::families());
    families
}

/// Steps of K that one tile takes.
const TILE: usize = 32;

/// Orders of summation, each with another way to place factors and biases.
const ORDERS: [Style; 5] = [
    Style::NUMPY.ordered(SummationOrder::Sequential),
    Style::TRITON.ordered(SummationOrder::Tile(32)),
    Style::TRITON.ordered(SummationOrder::Lanes32),
    Style { division: crate::style::Division::Reciprocal, ..Style::TRITON.ordered(SummationOrder::Split(4)) },
    Style::NUMPY,
];

/// What goes wrong in any loop over K.
const LOOP: [Mutation; 5] = [
    Mutation::DropTail(TILE),
    Mutation::Overwrite,
    Mutation::SkipElement,
    Mutation::NarrowAccumulator(DType::BF16),
    Mutation::ScaleOutput(1.01),
];

/// The mutations of a loop over K and those of one op.
fn mutants(own: &[Mutation]) -> Vec<Mutation> {
    let mut all = LOOP.to_vec();
    all.extend_from_slice(own);
    all
}

/// The steps of K that a kernel takes, right or wrong.
fn steps(plan: &Plan, count: usize) -> Vec<usize> {
    let end = match plan.mutation {
        Some(Mutation::DropTail(tile)) if count > tile => count / tile * tile,
        _ => count,
    };
    // An accumulator that is overwritten holds the last tile.
    let start = if plan.mutation.is(Mutation::Overwrite) { end.saturating_sub(1) / TILE * TILE } else { 0 };
    let skipped = if plan.mutation.is(Mutation::SkipElement) && count > 1 { count / 2 } else { usize::MAX };
    (start..end).filter(|step| *step != skipped).collect()
}

/// Σ over K of terms, in the kernel's order.
fn sum_over<R: Real>(plan: &Plan, count: usize, term: impl FnMut(usize) -> R) -> R {
    let terms: Vec<R> = steps(plan, count).into_iter().map(term).collect();
    add_up(plan, &terms)
}

/// Rounded to the dtype of intermediates, if the kernel has one.
fn rounded<R: Real>(plan: &Plan, value: R) -> R {
    match plan.style.intermediate {
        None => value,
        Some(dtype) => R::new(dtype.decode(dtype.encode(value.value()))),
    }
}
