//! Flat kernels beyond the activations.

mod arithmetic;
mod functions;
mod gates;
mod masks;

use gpuemu_engine::runner::{Invocation, RunnerError};

use crate::implementations::Family;
use crate::kernels::{Plan, input, write};
use crate::mutation::{Mutated, Mutation};
use crate::real::Real;
use crate::style::TanhRoute;

/// The ops of this group and their kernels.
pub fn families() -> Vec<Family> {
    let parts = [arithmetic::families(), functions::families(), gates::families(), masks::families()];
    parts.into_iter().flatten().collect()
}

/// The last, partial block of a flat kernel is never run.
const TAIL: Mutation = Mutation::DropTail(64);

/// Stores the output of a flat kernel; where the last block is not run, what was there stays.
fn store_blocks<R: Real>(call: &mut Invocation<'_>, plan: &Plan, values: &[R]) -> Result<(), RunnerError> {
    let run = match plan.mutation {
        Some(Mutation::DropTail(block)) if values.len() >= block => values.len() / block * block,
        _ => values.len(),
    };
    write(plan, &mut call.outputs[0], &values[..run])
}

fn unary<R: Real>(call: &mut Invocation<'_>, plan: &Plan, formula: impl Fn(R) -> R) -> Result<(), RunnerError> {
    let results: Vec<R> = input(call, "input")?.into_iter().map(formula).collect();
    store_blocks(call, plan, &results)
}

/// Two operands of the same shape; the second is read one off where that is the mutation.
fn binary<R: Real>(
    call: &mut Invocation<'_>,
    plan: &Plan,
    [first, second]: [&[R]; 2],
    formula: impl Fn(R, R) -> R,
) -> Result<(), RunnerError> {
    let shift = usize::from(plan.mutation.is(Mutation::OffByOne));
    let results: Vec<R> = (0..first.len().min(second.len()))
        .map(|element| formula(first[element], second[(element + shift) % second.len()]))
        .collect();
    store_blocks(call, plan, &results)
}

/// a + b·c, fused or not as the style has it.
fn multiply_add<R: Real>(plan: &Plan, a: R, b: R, c: R) -> R {
    // In float64 the product of float32 numbers is exact.
    if plan.style.tanh == TanhRoute::Sigmoid { R::new(a.value() + b.value() * c.value()) } else { a + b * c }
}

/// The smaller; a NaN loses against a number.
fn smaller<R: Real>(left: R, right: R) -> R {
    -((-left).larger(-right))
}
