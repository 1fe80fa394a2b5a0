//! any and all along the last dim.

use gpuemu_engine::runner::{Invocation, RunnerError};

use crate::implementations::{Family, ORDERS};
use crate::kernel;
use crate::kernels::reduction::reduce;
use crate::kernels::{Plan, add_up};
use crate::mutation::{Mutated, Mutation};
use crate::real::Real;
use crate::style::Division;

const FIRST_ONLY: &str = "only the first 32 lanes vote";
const NOTHING: &str = "wrong for a row without elements";

pub(super) fn families() -> Vec<Family> {
    let mutants = [
        Mutation::SwapOperands,
        Mutation::FlipSign,
        Mutation::SkipElement,
        Mutation::DropTail(2),
        Mutation::Named(NOTHING),
    ];
    let mut every = mutants.to_vec();
    every.extend([Mutation::PadZero(128), Mutation::Named(FIRST_ONLY)]);
    vec![Family::new(kernel!("any", any), &ORDERS, &mutants), Family::new(kernel!("all", all), &ORDERS, &every)]
}

fn any<R: Real>(call: &mut Invocation<'_>, plan: &Plan) -> Result<(), RunnerError> {
    vote::<R>(call, plan, plan.mutation.is(Mutation::SwapOperands))
}

fn all<R: Real>(call: &mut Invocation<'_>, plan: &Plan) -> Result<(), RunnerError> {
    vote::<R>(call, plan, !plan.mutation.is(Mutation::SwapOperands))
}

/// Counts votes in the kernel's order, or stops at the first that decides.
fn vote<R: Real>(call: &mut Invocation<'_>, plan: &Plan, every: bool) -> Result<(), RunnerError> {
    let neutral = if every { R::one() } else { R::zero() };
    reduce(call, plan, neutral, |lanes: &[R], _| {
        let voting = if plan.mutation.named(FIRST_ONLY) { &lanes[..lanes.len().min(32)] } else { lanes };
        let holds = if plan.style.division == Division::Exact {
            voting.iter().all(|flag| (*flag == R::zero()) != every) == every
        } else {
            let count = add_up(plan, voting);
            if every { count == R::new(voting.len() as f64) } else { count > R::zero() }
        };
        let wrong = plan.mutation.is(Mutation::FlipSign) || plan.mutation.named(NOTHING) && lanes.is_empty();
        if holds != wrong { R::one() } else { R::zero() }
    })
}
