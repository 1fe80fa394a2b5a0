//! Sums, products and quotients, also in place.

use gpuemu_engine::runner::{Invocation, RunnerError};

use super::{TAIL, binary, multiply_add, store_blocks, unary};
use crate::implementations::{Family, ROUTES};
use crate::kernel;
use crate::kernels::{Plan, input, read, size};
use crate::mutation::{Mutated, Mutation};
use crate::real::Real;

const WRONG_OPERAND: &str = "alpha on the wrong operand";
const EPS: &str = "1e-6 added to the divisor";
const MAGNITUDE: &str = "sign of the second operand lost";
const BY_ROW: &str = "bias indexed by row";
const TWICE: &str = "applied twice, to its own result";

pub(super) fn families() -> Vec<Family> {
    let sum = [
        Mutation::Constant(1.01),
        Mutation::DropFactor,
        Mutation::FlipSign,
        Mutation::OffByOne,
        Mutation::Named(WRONG_OPERAND),
        TAIL,
        Mutation::ScaleOutput(1.001),
    ];
    let mut in_place = sum.to_vec();
    in_place.push(Mutation::Named(TWICE));
    let product = [Mutation::OffByOne, Mutation::Named(MAGNITUDE), TAIL, Mutation::ScaleOutput(1.001)];
    let mut product_in_place = product.to_vec();
    product_in_place.push(Mutation::Named(TWICE));
    let quotient =
        [Mutation::SwapOperands, Mutation::OffByOne, Mutation::Named(EPS), TAIL, Mutation::ScaleOutput(1.001)];
    let bias = [
        Mutation::Named(BY_ROW),
        Mutation::OffByOne,
        Mutation::DropFactor,
        Mutation::Constant(1.01),
        Mutation::ScaleOutput(1.001),
    ];
    let inverse =
        [Mutation::Named(EPS), Mutation::FlipSign, Mutation::ScaleArgument(1.001), TAIL, Mutation::ScaleOutput(1.001)];
    vec![
        Family::new(kernel!("add", add), &ROUTES, &sum),
        Family::new(kernel!("sub", subtract), &ROUTES, &sum),
        Family::new(kernel!("add_", add_in_place), &ROUTES, &in_place),
        Family::new(kernel!("mul", multiply), &ROUTES, &product),
        Family::new(kernel!("mul_", multiply_in_place), &ROUTES, &product_in_place),
        Family::new(kernel!("div", divide), &ROUTES, &quotient),
        Family::new(kernel!("reciprocal", reciprocal), &ROUTES, &inverse),
        Family::new(kernel!("bias_add", bias_add), &ROUTES, &bias),
    ]
}

fn combine<R: Real>(
    call: &mut Invocation<'_>,
    plan: &Plan,
    first: &[R],
    second: &[R],
    sign: f64,
) -> Result<(), RunnerError> {
    let declared = call.parameters.float("alpha").unwrap_or(1.0);
    let alpha = if plan.mutation.is(Mutation::DropFactor) { 1.0 } else { declared * plan.mutation.constant() };
    let sign = if plan.mutation.is(Mutation::FlipSign) { -sign } else { sign };
    let factor = R::new(alpha * sign);
    binary(call, plan, [first, second], |a, b| {
        if plan.mutation.named(WRONG_OPERAND) {
            R::new(sign) * b + R::new(alpha) * a
        } else if plan.mutation.named(TWICE) {
            multiply_add(plan, multiply_add(plan, a, factor, b), factor, b)
        } else {
            multiply_add(plan, a, factor, b)
        }
    })
}

fn add<R: Real>(call: &mut Invocation<'_>, plan: &Plan) -> Result<(), RunnerError> {
    let (first, second): (Vec<R>, Vec<R>) = (input(call, "input")?, input(call, "other")?);
    combine(call, plan, &first, &second, 1.0)
}

fn subtract<R: Real>(call: &mut Invocation<'_>, plan: &Plan) -> Result<(), RunnerError> {
    let (first, second): (Vec<R>, Vec<R>) = (input(call, "input")?, input(call, "other")?);
    combine(call, plan, &first, &second, -1.0)
}

fn add_in_place<R: Real>(call: &mut Invocation<'_>, plan: &Plan) -> Result<(), RunnerError> {
    let (first, second): (Vec<R>, Vec<R>) = (read(&call.outputs[0])?, input(call, "other")?);
    combine(call, plan, &first, &second, 1.0)
}

fn product<R: Real>(call: &mut Invocation<'_>, plan: &Plan, first: &[R], second: &[R]) -> Result<(), RunnerError> {
    binary(call, plan, [first, second], |a, b| {
        if plan.mutation.named(MAGNITUDE) {
            a * b.abs()
        } else if plan.mutation.named(TWICE) {
            a * b * b
        } else {
            a * b
        }
    })
}

fn multiply<R: Real>(call: &mut Invocation<'_>, plan: &Plan) -> Result<(), RunnerError> {
    let (first, second): (Vec<R>, Vec<R>) = (input(call, "input")?, input(call, "other")?);
    product(call, plan, &first, &second)
}

fn multiply_in_place<R: Real>(call: &mut Invocation<'_>, plan: &Plan) -> Result<(), RunnerError> {
    let (first, second): (Vec<R>, Vec<R>) = (read(&call.outputs[0])?, input(call, "other")?);
    product(call, plan, &first, &second)
}

fn divide<R: Real>(call: &mut Invocation<'_>, plan: &Plan) -> Result<(), RunnerError> {
    let (first, second): (Vec<R>, Vec<R>) = (input(call, "input")?, input(call, "other")?);
    let division = plan.style.division;
    binary(call, plan, [&first, &second], |a, b| {
        if plan.mutation.is(Mutation::SwapOperands) {
            b.over(a, division)
        } else if plan.mutation.named(EPS) {
            a.over(b + R::new(1e-6), division)
        } else {
            a.over(b, division)
        }
    })
}

fn reciprocal<R: Real>(call: &mut Invocation<'_>, plan: &Plan) -> Result<(), RunnerError> {
    let (argument, division) = (plan.mutation.argument(), plan.style.division);
    unary(call, plan, |x: R| {
        if plan.mutation.named(EPS) {
            R::one().over(x + R::new(1e-6), division)
        } else if plan.mutation.is(Mutation::FlipSign) {
            R::one().over(x.abs(), division)
        } else if argument != 1.0 {
            R::one().over(x * R::new(argument), division)
        } else {
            R::one().over(x, division)
        }
    })
}

fn bias_add<R: Real>(call: &mut Invocation<'_>, plan: &Plan) -> Result<(), RunnerError> {
    let (rows, bias): (Vec<R>, Vec<R>) = (input(call, "input")?, input(call, "bias")?);
    let width = size(call, "H").max(1);
    let factor = R::new(plan.mutation.constant());
    let mut results = Vec::with_capacity(rows.len());
    for (element, x) in rows.iter().enumerate() {
        let column = match plan.mutation {
            Some(Mutation::OffByOne) => (element + 1) % width,
            _ if plan.mutation.named(BY_ROW) => (element / width) % width,
            _ => element % width,
        };
        let added = if plan.mutation.is(Mutation::DropFactor) { R::zero() } else { bias[column] * factor };
        results.push(*x + added);
    }
    store_blocks(call, plan, &results)
}
