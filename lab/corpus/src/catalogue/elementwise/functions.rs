//! exp, log, roots and softplus.

use gpuemu_engine::runner::{Invocation, RunnerError};

use super::{TAIL, unary};
use crate::implementations::{Family, ROUTES};
use crate::kernel;
use crate::kernels::Plan;
use crate::mutation::{Mutated, Mutation};
use crate::real::Real;
use crate::style::{Division, ExpRoute};

const BASE_2: &str = "base 2 in place of e";
const MAGNITUDE: &str = "of |x|, which is no NaN below 0";
const PLUS_ONE: &str = "of 1 + x";
const EPS: &str = "1e-6 added to x";
const NOT_INVERTED: &str = "root not inverted";
const NOT_DIVIDED: &str = "not divided by beta";
const NO_THRESHOLD: &str = "threshold ignored";

pub(super) fn families() -> Vec<Family> {
    let scale = Mutation::ScaleOutput(1.001);
    vec![
        Family::new(
            kernel!("exp", exp),
            &ROUTES,
            &[Mutation::Named(BASE_2), Mutation::ScaleArgument(1.01), Mutation::DropMaximum, TAIL, scale],
        ),
        Family::new(
            kernel!("log", log),
            &ROUTES,
            &[
                Mutation::Named(BASE_2),
                Mutation::Named(MAGNITUDE),
                Mutation::Named(PLUS_ONE),
                Mutation::Named(EPS),
                scale,
            ],
        ),
        Family::new(
            kernel!("sqrt", sqrt),
            &ROUTES,
            &[Mutation::DropRoot, Mutation::Named(MAGNITUDE), Mutation::Named(EPS), TAIL, scale],
        ),
        Family::new(
            kernel!("rsqrt", rsqrt),
            &ROUTES,
            &[Mutation::DropRoot, Mutation::Named(NOT_INVERTED), Mutation::Named(EPS), TAIL, scale],
        ),
        Family::new(
            kernel!("softplus", softplus),
            &ROUTES,
            &[
                Mutation::Named(NOT_DIVIDED),
                Mutation::Named(NO_THRESHOLD),
                Mutation::DropFactor,
                Mutation::ScaleArgument(1.01),
                scale,
            ],
        ),
    ]
}

fn exp<R: Real>(call: &mut Invocation<'_>, plan: &Plan) -> Result<(), RunnerError> {
    let (argument, route) = (R::new(plan.mutation.argument()), plan.style.exp);
    unary(call, plan, |x: R| {
        if plan.mutation.named(BASE_2) {
            x.exp2(route)
        } else if plan.mutation.is(Mutation::DropMaximum) {
            // The argument clamped to what a table of exponentials holds.
            if x > R::new(8.0) { R::new(8.0).exp(route) } else { x.exp(route) }
        } else {
            (x * argument).exp(route)
        }
    })
}

fn log<R: Real>(call: &mut Invocation<'_>, plan: &Plan) -> Result<(), RunnerError> {
    let direct = plan.style.exp == ExpRoute::Direct;
    let binary = |x: R| R::new(libm::log2(x.value()));
    unary(call, plan, |x: R| {
        let x = match plan.mutation {
            Some(Mutation::Named(PLUS_ONE)) => x + R::one(),
            Some(Mutation::Named(EPS)) => x + R::new(1e-6),
            Some(Mutation::Named(MAGNITUDE)) => x.abs(),
            _ => x,
        };
        if plan.mutation.named(BASE_2) {
            binary(x)
        } else if direct {
            x.ln()
        } else {
            binary(x) * R::new(std::f64::consts::LN_2)
        }
    })
}

/// What stands under a root, wrong or right.
fn radicand<R: Real>(plan: &Plan, x: R) -> R {
    match plan.mutation {
        Some(Mutation::Named(EPS)) => x + R::new(1e-6),
        Some(Mutation::Named(MAGNITUDE)) => x.abs(),
        _ => x,
    }
}

fn sqrt<R: Real>(call: &mut Invocation<'_>, plan: &Plan) -> Result<(), RunnerError> {
    unary(call, plan, |x: R| {
        let x = radicand(plan, x);
        if plan.mutation.is(Mutation::DropRoot) {
            return x;
        }
        let root = x.sqrt();
        match plan.style.division {
            Division::Exact => root,
            // x*rsqrt(x), which is NaN at 0 and at infinity.
            Division::Reciprocal if x == R::zero() || x == -R::lowest() => x,
            Division::Reciprocal => x * (R::one() / root),
            Division::Approximate => R::one() / (R::one() / root),
        }
    })
}

fn rsqrt<R: Real>(call: &mut Invocation<'_>, plan: &Plan) -> Result<(), RunnerError> {
    unary(call, plan, |x: R| {
        let x = radicand(plan, x);
        match plan.mutation {
            Some(Mutation::DropRoot) => R::one().over(x, plan.style.division),
            Some(Mutation::Named(NOT_INVERTED)) => x.sqrt(),
            _ => R::one().over(x.sqrt(), plan.style.division),
        }
    })
}

fn softplus<R: Real>(call: &mut Invocation<'_>, plan: &Plan) -> Result<(), RunnerError> {
    let beta = R::new(call.parameters.float("beta").unwrap_or(1.0));
    let threshold = R::new(call.parameters.float("threshold").unwrap_or(20.0));
    let argument = R::new(plan.mutation.argument());
    let style = plan.style;
    let log1p = |x: R| R::new(libm::log1p(x.value()));
    unary(call, plan, |x: R| {
        let z = x * beta * argument;
        if z > threshold && !plan.mutation.named(NO_THRESHOLD) {
            return x;
        }
        let smooth = match (style.division, style.exp) {
            _ if plan.mutation.named(NO_THRESHOLD) => z.larger(R::zero()) + log1p((-z.abs()).exp(style.exp)),
            _ if plan.mutation.is(Mutation::DropFactor) => z.exp(style.exp).ln(),
            (Division::Exact, _) => log1p(z.exp(style.exp)),
            (_, ExpRoute::Exp2) => (R::one() + z.exp(style.exp)).ln(),
            _ => z.larger(R::zero()) + log1p((-z.abs()).exp(style.exp)),
        };
        if plan.mutation.named(NOT_DIVIDED) { smooth } else { smooth.over(beta, style.division) }
    })
}
