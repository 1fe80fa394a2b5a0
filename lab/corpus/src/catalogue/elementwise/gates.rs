//! hardswish, mish and geglu.

use gpuemu_engine::runner::{Invocation, RunnerError};

use super::{TAIL, binary, smaller, unary};
use crate::implementations::{Family, ROUTES};
use crate::kernel;
use crate::kernels::elementwise::hyperbolic;
use crate::kernels::{Plan, input};
use crate::mutation::{Mutated, Mutation};
use crate::real::Real;
use crate::style::{Division, TanhRoute};

const NO_LIMIT: &str = "upper limit missing";
const SHIFT_2: &str = "x + 2 in place of x + 3";
const EXP_ONLY: &str = "exp in place of softplus";
const OTHER_FORM: &str = "erf and tanh form mixed up";

pub(super) fn families() -> Vec<Family> {
    let scale = Mutation::ScaleOutput(1.01);
    vec![
        Family::new(
            kernel!("hardswish", hardswish),
            &ROUTES,
            &[
                Mutation::Named(NO_LIMIT),
                Mutation::Named(SHIFT_2),
                Mutation::Constant(1.01),
                Mutation::DropFactor,
                TAIL,
                scale,
            ],
        ),
        Family::new(
            kernel!("mish", mish),
            &ROUTES,
            &[Mutation::Named(EXP_ONLY), Mutation::ScaleArgument(1.01), Mutation::DropFactor, TAIL, scale],
        ),
        Family::new(
            kernel!("geglu", geglu),
            &ROUTES,
            &[
                Mutation::SwapOperands,
                Mutation::Named(OTHER_FORM),
                Mutation::DropFactor,
                Mutation::ScaleArgument(1.01),
                TAIL,
                scale,
            ],
        ),
    ]
}

fn hardswish<R: Real>(call: &mut Invocation<'_>, plan: &Plan) -> Result<(), RunnerError> {
    let (six, three) = (R::new(6.0), R::new(if plan.mutation.named(SHIFT_2) { 2.0 } else { 3.0 }));
    let divisor = six * R::new(plan.mutation.constant());
    unary(call, plan, |x: R| {
        let mut gate = (x + three).larger(R::zero());
        if !plan.mutation.named(NO_LIMIT) {
            gate = smaller(gate, six);
        }
        // max and min drop a NaN, the factor x brings it back.
        match plan.style.division {
            _ if plan.mutation.is(Mutation::DropFactor) => gate.over(divisor, plan.style.division),
            Division::Exact => x * gate / divisor,
            Division::Reciprocal => x * gate * (R::one() / divisor),
            Division::Approximate => x * gate.over(divisor, plan.style.division),
        }
    })
}

fn mish<R: Real>(call: &mut Invocation<'_>, plan: &Plan) -> Result<(), RunnerError> {
    let (argument, style) = (R::new(plan.mutation.argument()), plan.style);
    let two = R::new(2.0);
    unary(call, plan, |x: R| {
        let z = x * argument;
        let gate = if plan.mutation.named(EXP_ONLY) {
            hyperbolic(z.exp(style.exp), &style)
        } else if style.tanh == TanhRoute::Quotient {
            // tanh(log(1 + e)) = n/(n + 2) with n = e(e + 2), cut off where it is 1.
            let e = smaller(z, R::new(20.0)).exp(style.exp);
            let n = e * (e + two);
            n.over(n + two, style.division)
        } else if style.tanh == TanhRoute::Direct {
            R::new(libm::log1p(z.exp(style.exp).value())).tanh()
        } else {
            let smooth = z.larger(R::zero()) + (R::one() + (-z.abs()).exp(style.exp)).ln();
            hyperbolic(smooth, &style)
        };
        if plan.mutation.is(Mutation::DropFactor) { gate } else { x * gate }
    })
}

fn geglu<R: Real>(call: &mut Invocation<'_>, plan: &Plan) -> Result<(), RunnerError> {
    let (gate, up): (Vec<R>, Vec<R>) = (input(call, "gate")?, input(call, "up")?);
    let tanh = call.parameters.flag("approximate_tanh") != plan.mutation.named(OTHER_FORM);
    let half = R::new(if plan.mutation.is(Mutation::DropFactor) { 1.0 } else { 0.5 });
    let (argument, style) = (plan.mutation.argument(), plan.style);
    let activate = |x: R| {
        let bracket = if tanh {
            let inner = x * (R::one() + R::new(0.044715) * x * x);
            R::one() + hyperbolic(R::new(0.797_884_560_802_865_4 * argument) * inner, &style)
        } else {
            R::one() + (x * R::new(std::f64::consts::FRAC_1_SQRT_2 * argument)).erf()
        };
        half * x * bracket
    };
    let swapped = plan.mutation.is(Mutation::SwapOperands);
    binary(call, plan, [&gate, &up], |gate, up| {
        if swapped {
            return gate * activate(up);
        }
        let activated = activate(gate);
        match style.intermediate {
            Some(dtype) => R::new(dtype.decode(dtype.encode(activated.value()))) * up,
            None => activated * up,
        }
    })
}
