//! Gradients of activations.

use gpuemu_engine::runner::{Invocation, RunnerError};

use super::GRADIENT_ONE;
use crate::implementations::{Family, ROUTES};
use crate::kernel;
use crate::kernels::{Plan, input, write};
use crate::mutation::{Mutated, Mutation};
use crate::real::Real;
use crate::style::{Division, Style, TanhRoute};

const OTHER_FORM: &str = "erf and tanh form mixed up";
const NO_CUBIC: &str = "derivative of the cubic term dropped";
const SIGMOID_SLOPE: &str = "slope of the sigmoid in place of that of silu";
const WITHOUT_UP: &str = "gradient of the gate without up";

pub(super) fn families() -> Vec<Family> {
    vec![
        Family::new(
            kernel!("silu_backward", silu_backward),
            &ROUTES,
            &[
                Mutation::DropFactor,
                Mutation::FlipSign,
                Mutation::ScaleArgument(1.01),
                Mutation::Named(GRADIENT_ONE),
                Mutation::ScaleOutput(1.01),
            ],
        ),
        Family::new(
            kernel!("gelu_backward", gelu_backward),
            &ROUTES,
            &[
                Mutation::DropFactor,
                Mutation::FlipSign,
                Mutation::ScaleArgument(1.01),
                Mutation::Named(OTHER_FORM),
                Mutation::Named(NO_CUBIC),
                Mutation::ScaleOutput(1.01),
            ],
        ),
        Family::new(
            kernel!("swiglu_backward", swiglu_backward),
            &ROUTES,
            &[
                Mutation::SwapOperands,
                Mutation::Named(SIGMOID_SLOPE),
                Mutation::Named(WITHOUT_UP),
                Mutation::ScaleArgument(1.01),
                Mutation::ScaleOutput(1.01),
            ],
        ),
    ]
}

fn logistic<R: Real>(x: R, style: &Style) -> R {
    R::one().over(R::one() + (-x).exp(style.exp), style.division)
}

/// silu′, in one of two forms.
fn silu_slope<R: Real>(x: R, plan: &Plan) -> R {
    let gate = logistic(x * R::new(plan.mutation.argument()), &plan.style);
    let rest = R::one() - gate;
    if plan.mutation.is(Mutation::DropFactor) {
        gate
    } else if plan.mutation.is(Mutation::FlipSign) {
        gate * (R::one() - x * rest)
    } else if plan.mutation.named(SIGMOID_SLOPE) {
        gate * rest
    } else if plan.style.division == Division::Exact {
        gate * (R::one() + x * rest)
    } else {
        gate + x * gate * rest
    }
}

fn silu_backward<R: Real>(call: &mut Invocation<'_>, plan: &Plan) -> Result<(), RunnerError> {
    let (gradient, x): (Vec<R>, Vec<R>) = (input(call, "grad_output")?, input(call, "input")?);
    let alone = plan.mutation.named(GRADIENT_ONE);
    let slopes = gradient.iter().zip(&x).map(|(dy, x)| (if alone { R::one() } else { *dy }) * silu_slope(*x, plan));
    let out: Vec<R> = slopes.collect();
    write(plan, &mut call.outputs[0], &out)
}

fn hyperbolic<R: Real>(x: R, style: &Style) -> R {
    match style.tanh {
        TanhRoute::Direct => x.tanh(),
        TanhRoute::Sigmoid => R::new(2.0) * logistic(R::new(2.0) * x, style) - R::one(),
        TanhRoute::Quotient => {
            let e = (-(R::new(2.0) * x.abs())).exp(style.exp);
            let magnitude = (R::one() - e).over(R::one() + e, style.division);
            if x < R::zero() { -magnitude } else { magnitude }
        }
    }
}

fn gelu_slope<R: Real>(x: R, plan: &Plan, approximate: bool) -> R {
    let (half, argument) = (R::new(0.5), R::new(plan.mutation.argument()));
    let sign = if plan.mutation.is(Mutation::FlipSign) { -R::one() } else { R::one() };
    let bent = if plan.mutation.is(Mutation::DropFactor) { R::zero() } else { sign };
    if !approximate {
        let below = half * (R::one() + (x * R::new(std::f64::consts::FRAC_1_SQRT_2) * argument).erf());
        let density = (-(half * x * x)).exp(plan.style.exp) * R::new(0.398_942_280_401_432_7);
        return below + bent * x * density;
    }
    let (scale, cubic) = (R::new(0.797_884_560_802_865_4), R::new(0.044_715));
    let t = hyperbolic(scale * (x + cubic * x * x * x) * argument, &plan.style);
    let three = if plan.mutation.named(NO_CUBIC) { R::zero() } else { R::new(3.0) };
    let inner = scale * (R::one() + three * cubic * x * x);
    half * (R::one() + t) + bent * half * x * (R::one() - t * t) * inner
}

fn gelu_backward<R: Real>(call: &mut Invocation<'_>, plan: &Plan) -> Result<(), RunnerError> {
    let (gradient, x): (Vec<R>, Vec<R>) = (input(call, "grad_output")?, input(call, "input")?);
    let approximate = call.parameters.flag("approximate") != plan.mutation.named(OTHER_FORM);
    let out: Vec<R> = gradient.iter().zip(&x).map(|(dy, x)| *dy * gelu_slope(*x, plan, approximate)).collect();
    write(plan, &mut call.outputs[0], &out)
}

fn swiglu_backward<R: Real>(call: &mut Invocation<'_>, plan: &Plan) -> Result<(), RunnerError> {
    let gradient: Vec<R> = input(call, "grad_output")?;
    let swapped = plan.mutation.is(Mutation::SwapOperands);
    let names = if swapped { ["up", "gate"] } else { ["gate", "up"] };
    let (gate, up): (Vec<R>, Vec<R>) = (input(call, names[0])?, input(call, names[1])?);
    let (mut grad_gate, mut grad_up) = (Vec::new(), Vec::new());
    for ((dy, x), up) in gradient.iter().zip(&gate).zip(&up) {
        let slope = silu_slope(*x, plan);
        let up = if plan.mutation.named(WITHOUT_UP) { R::one() } else { *up };
        // Three factors in one of two orders.
        grad_gate.push(if plan.style.block == 256 { *dy * (up * slope) } else { *dy * up * slope });
        grad_up.push(*dy * (*x * logistic(*x * R::new(plan.mutation.argument()), &plan.style)));
    }
    write(plan, &mut call.outputs[0], &grad_gate)?;
    write(plan, &mut call.outputs[1], &grad_up)
}
