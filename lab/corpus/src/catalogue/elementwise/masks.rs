//! clamp, where, dropout, and relu in place.

use gpuemu_engine::runner::{Invocation, RunnerError};

use super::{TAIL, smaller, store_blocks, unary};
use crate::implementations::{Family, ROUTES};
use crate::kernel;
use crate::kernels::{Plan, input, read};
use crate::mutation::{Mutated, Mutation};
use crate::real::Real;
use crate::style::Division;

const NAN_TO_BOUND: &str = "NaN becomes a bound";
const NO_UPPER: &str = "upper bound missing";
const BY_PRODUCT: &str = "product with the condition, which lets NaN through";
const BY_P: &str = "divided by p";
const NAN_TO_ZERO: &str = "NaN becomes zero";
const MAGNITUDE: &str = "|x| in place of max(x, 0)";
const LEFT_ALONE: &str = "written to a copy";

pub(super) fn families() -> Vec<Family> {
    let scale = Mutation::ScaleOutput(1.01);
    vec![
        Family::new(
            kernel!("clamp", clamp),
            &ROUTES,
            &[
                Mutation::Named(NAN_TO_BOUND),
                Mutation::Named(NO_UPPER),
                Mutation::SwapOperands,
                Mutation::Constant(1.01),
                TAIL,
                scale,
            ],
        ),
        Family::new(
            kernel!("where", select),
            &ROUTES,
            &[Mutation::SwapOperands, Mutation::OffByOne, Mutation::Named(BY_PRODUCT), TAIL, scale],
        ),
        Family::new(
            kernel!("dropout", dropout),
            &ROUTES,
            &[
                Mutation::FlipSign,
                Mutation::DropFactor,
                Mutation::Named(BY_P),
                Mutation::OffByOne,
                Mutation::Constant(1.01),
                scale,
            ],
        ),
        Family::new(
            kernel!("relu_", relu_in_place),
            &ROUTES,
            &[
                Mutation::Constant(1.01),
                Mutation::Named(NAN_TO_ZERO),
                Mutation::Named(MAGNITUDE),
                Mutation::Named(LEFT_ALONE),
                TAIL,
                scale,
            ],
        ),
    ]
}

fn clamp<R: Real>(call: &mut Invocation<'_>, plan: &Plan) -> Result<(), RunnerError> {
    let bound = |name: &str| call.parameters.float(name).unwrap_or(0.0) * plan.mutation.constant();
    let (mut lower, mut upper) = (R::new(bound("min")), R::new(bound("max")));
    if plan.mutation.is(Mutation::SwapOperands) {
        (lower, upper) = (upper, lower);
    }
    if plan.mutation.named(NO_UPPER) {
        upper = -R::lowest();
    }
    let by_comparison = plan.style.division == Division::Exact;
    unary(call, plan, |x: R| {
        if x.is_nan() && !plan.mutation.named(NAN_TO_BOUND) {
            x
        } else if by_comparison && !x.is_nan() {
            let raised = if x < lower { lower } else { x };
            if raised > upper { upper } else { raised }
        } else {
            smaller(x.larger(lower), upper)
        }
    })
}

fn select<R: Real>(call: &mut Invocation<'_>, plan: &Plan) -> Result<(), RunnerError> {
    let condition: Vec<R> = input(call, "condition")?;
    let (mut yes, mut no): (Vec<R>, Vec<R>) = (input(call, "input")?, input(call, "other")?);
    if plan.mutation.is(Mutation::SwapOperands) {
        (yes, no) = (no, yes);
    }
    let shift = usize::from(plan.mutation.is(Mutation::OffByOne));
    let mut results = Vec::with_capacity(yes.len());
    for (element, (yes, no)) in yes.iter().zip(&no).enumerate() {
        let flag = condition[(element + shift) % condition.len()];
        results.push(if plan.mutation.named(BY_PRODUCT) {
            *yes * flag + *no * (R::one() - flag)
        } else if flag == R::zero() {
            *no
        } else {
            *yes
        });
    }
    store_blocks(call, plan, &results)
}

fn dropout<R: Real>(call: &mut Invocation<'_>, plan: &Plan) -> Result<(), RunnerError> {
    let (values, mask): (Vec<R>, Vec<R>) = (input(call, "input")?, input(call, "mask")?);
    let p = R::new(call.parameters.float("p").unwrap_or(0.5) * plan.mutation.constant());
    let share = match plan.mutation {
        Some(Mutation::DropFactor) => R::one(),
        Some(Mutation::Named(BY_P)) => p,
        _ => R::one() - p,
    };
    let inverted = plan.mutation.is(Mutation::FlipSign);
    let shift = usize::from(plan.mutation.is(Mutation::OffByOne));
    let scale = R::one().over(share, plan.style.division);
    let mut results = Vec::with_capacity(values.len());
    for (element, x) in values.iter().enumerate() {
        let flag = mask[(element + shift) % mask.len()];
        let flag = if inverted { R::one() - flag } else { flag };
        results.push(match plan.style.division {
            Division::Reciprocal => *x * flag * scale,
            _ if flag == R::zero() => R::zero(),
            Division::Exact => *x / share,
            Division::Approximate => *x * scale,
        });
    }
    store_blocks(call, plan, &results)
}

fn relu_in_place<R: Real>(call: &mut Invocation<'_>, plan: &Plan) -> Result<(), RunnerError> {
    // A constant of 0 is changed by adding to it.
    let threshold = R::new(plan.mutation.constant() - 1.0);
    let by_comparison = plan.style.division == Division::Exact;
    if plan.mutation.named(LEFT_ALONE) {
        return Ok(());
    }
    let before: Vec<R> = read(&call.outputs[0])?;
    let rectify = |x: R| {
        if plan.mutation.named(MAGNITUDE) {
            x.abs()
        } else if x.is_nan() && !plan.mutation.named(NAN_TO_ZERO) {
            x
        } else if by_comparison {
            if x > threshold { x } else { R::zero() }
        } else {
            x.larger(threshold)
        }
    };
    let results: Vec<R> = before.into_iter().map(rectify).collect();
    store_blocks(call, plan, &results)
}
