//! Steps of optimisers.

use gpuemu_engine::runner::{Invocation, RunnerError};

use crate::implementations::{Family, ROUTES};
use crate::kernel;
use crate::kernels::{Plan, input, read, write};
use crate::mutation::{Mutated, Mutation};
use crate::real::Real;
use crate::style::Division;

const UNCORRECTED: &str = "bias corrections missing";
const STEP_BEFORE: &str = "bias corrections of the step before";
const EPS_INSIDE: &str = "eps inside of the root";
const PENALTY: &str = "weight decay added to the gradient";
const OLD_MOMENTS: &str = "old moments in the update";
const ROOTLESS: &str = "root of the second correction missing";
const NEW_MOMENT: &str = "sign of the new moment";
const UNDECAYED: &str = "weight decay missing";
const ZERO_IS_ONE: &str = "sign of 0 taken for 1";
const OLD_BUFFER: &str = "nesterov with the old buffer";
const DAMPED_BUFFER: &str = "dampening of the buffer in place of the gradient";
const PLAIN_BUFFER: &str = "weight decay missing in the buffer";
const NOT_AHEAD: &str = "nesterov ignored";

/// The ops of this group and their kernels.
pub fn families() -> Vec<Family> {
    let named = |names: &[&'static str]| -> Vec<Mutation> {
        let own = names.iter().map(|name| Mutation::Named(name));
        own.chain([Mutation::SwapOperands, Mutation::Constant(10.0), Mutation::ScaleOutput(1.01)]).collect()
    };
    vec![
        Family::new(
            kernel!("adamw", adamw),
            &ROUTES,
            &named(&[UNCORRECTED, STEP_BEFORE, EPS_INSIDE, PENALTY, OLD_MOMENTS, ROOTLESS]),
        ),
        Family::new(kernel!("lion", lion), &ROUTES, &named(&[NEW_MOMENT, UNDECAYED, ZERO_IS_ONE])),
        Family::new(kernel!("sgd", sgd), &ROUTES, &named(&[OLD_BUFFER, DAMPED_BUFFER, PLAIN_BUFFER, NOT_AHEAD])),
    ]
}

fn parameter(call: &Invocation<'_>, name: &str) -> f64 {
    call.parameters.float(name).unwrap_or(0.0)
}

/// Whether constants are computed on the host, in float64, before they are rounded.
fn on_host(plan: &Plan) -> bool {
    plan.style.division == Division::Exact
}

/// 1 − β.
fn complement<R: Real>(plan: &Plan, beta: f64) -> R {
    if on_host(plan) { R::new(1.0 - beta) } else { R::one() - R::new(beta) }
}

/// 1 − β^step.
fn correction<R: Real>(plan: &Plan, beta: f64, step: f64) -> R {
    if on_host(plan) {
        return R::new(1.0 - beta.powf(step));
    }
    R::one() - R::new(R::new(beta).value().powf(step))
}

/// β·old + (1 − β)·new, or a linear interpolation.
fn blend<R: Real>(plan: &Plan, beta: f64, old: R, new: R) -> R {
    let added = complement::<R>(plan, beta);
    if plan.style.block == 256 { old + added * (new - old) } else { R::new(beta) * old + added * new }
}

fn adamw<R: Real>(call: &mut Invocation<'_>, plan: &Plan) -> Result<(), RunnerError> {
    let [p, m, v] = [0, 1, 2].map(|place| read::<R>(&call.outputs[place]));
    let (mut p, mut m, mut v, g): (Vec<R>, Vec<R>, Vec<R>, Vec<R>) = (p?, m?, v?, input(call, "grad")?);
    let [lr, decay, eps] = ["lr", "weight_decay", "eps"].map(|name| parameter(call, name));
    let (mut beta1, mut beta2) = (parameter(call, "beta1"), parameter(call, "beta2"));
    if plan.mutation.is(Mutation::SwapOperands) {
        std::mem::swap(&mut beta1, &mut beta2);
    }
    let eps = R::new(eps * plan.mutation.constant());
    let step = call.parameters.int("step").unwrap_or(1) as f64;
    let step = if plan.mutation.named(STEP_BEFORE) { (step - 1.0).max(1.0) } else { step };
    let (mut first, mut second) = (correction::<R>(plan, beta1, step), correction::<R>(plan, beta2, step));
    if plan.mutation.named(UNCORRECTED) {
        (first, second) = (R::one(), R::one());
    }
    let division = plan.style.division;
    for place in 0..p.len() {
        let (old_m, old_v) = (m[place], v[place]);
        let mut gradient = g[place];
        if plan.mutation.named(PENALTY) {
            gradient = gradient + R::new(decay) * p[place];
        }
        m[place] = blend(plan, beta1, old_m, gradient);
        v[place] = R::new(beta2) * old_v + complement::<R>(plan, beta2) * gradient * gradient;
        let (used_m, used_v) = if plan.mutation.named(OLD_MOMENTS) { (old_m, old_v) } else { (m[place], v[place]) };
        let keeps = plan.mutation.named(PENALTY);
        if plan.mutation.named(EPS_INSIDE) {
            let root = (used_v.over(second, division) + eps).sqrt();
            p[place] =
                p[place] * R::new(1.0 - lr * decay) - R::new(lr) * used_m.over(first, division).over(root, division);
        } else if plan.mutation.named(ROOTLESS) {
            let root = used_v.sqrt().over(second, division) + eps;
            p[place] =
                p[place] * R::new(1.0 - lr * decay) - R::new(lr) * used_m.over(first, division).over(root, division);
        } else if on_host(plan) {
            let shrunk = if keeps { p[place] } else { p[place] * R::new(1.0 - lr * decay) };
            let denominator = used_v.sqrt() / second.sqrt() + eps;
            p[place] = shrunk - R::new(lr / first.value()) * (used_m / denominator);
        } else {
            let corrected = used_m.over(first, division);
            let denominator = used_v.over(second, division).sqrt() + eps;
            let update = corrected.over(denominator, division) + R::new(decay) * p[place];
            p[place] = p[place] - R::new(lr) * update;
        }
    }
    write(plan, &mut call.outputs[0], &p)?;
    write(plan, &mut call.outputs[1], &m)?;
    write(plan, &mut call.outputs[2], &v)
}

fn lion<R: Real>(call: &mut Invocation<'_>, plan: &Plan) -> Result<(), RunnerError> {
    let (mut p, mut m): (Vec<R>, Vec<R>) = (read(&call.outputs[0])?, read(&call.outputs[1])?);
    let g: Vec<R> = input(call, "grad")?;
    let [lr, decay, beta1, beta2] = ["lr", "weight_decay", "beta1", "beta2"].map(|name| parameter(call, name));
    let lr = lr * plan.mutation.constant();
    let swapped = plan.mutation.is(Mutation::SwapOperands);
    let (beta1, beta2) = if swapped { (beta2, beta1) } else { (beta1, beta2) };
    let decay = if plan.mutation.named(UNDECAYED) { 0.0 } else { decay };
    for place in 0..p.len() {
        let old = m[place];
        m[place] = blend(plan, beta2, old, g[place]);
        let blended = if plan.mutation.named(NEW_MOMENT) { m[place] } else { blend(plan, beta1, old, g[place]) };
        let sign = if blended > R::zero() {
            R::one()
        } else if blended < R::zero() {
            -R::one()
        } else if plan.mutation.named(ZERO_IS_ONE) {
            R::one()
        } else {
            R::zero()
        };
        p[place] = if on_host(plan) {
            p[place] * R::new(1.0 - lr * decay) - R::new(lr) * sign
        } else {
            p[place] - R::new(lr) * (sign + R::new(decay) * p[place])
        };
    }
    write(plan, &mut call.outputs[0], &p)?;
    write(plan, &mut call.outputs[1], &m)
}

fn sgd<R: Real>(call: &mut Invocation<'_>, plan: &Plan) -> Result<(), RunnerError> {
    let (mut p, mut b): (Vec<R>, Vec<R>) = (read(&call.outputs[0])?, read(&call.outputs[1])?);
    let g: Vec<R> = input(call, "grad")?;
    let [lr, momentum, dampening, decay] =
        ["lr", "momentum", "dampening", "weight_decay"].map(|name| parameter(call, name));
    let (lr, nesterov) = (lr * plan.mutation.constant(), call.parameters.flag("nesterov"));
    for place in 0..p.len() {
        let plain = g[place];
        let gradient = if decay == 0.0 { plain } else { plain + R::new(decay) * p[place] };
        let mut direction = gradient;
        if momentum != 0.0 {
            let old = b[place];
            let (kept, taken) = (R::new(momentum), complement::<R>(plan, dampening));
            let entering = if plan.mutation.named(PLAIN_BUFFER) { plain } else { gradient };
            b[place] = if plan.mutation.named(DAMPED_BUFFER) {
                kept * taken * old + entering
            } else if plan.mutation.is(Mutation::SwapOperands) {
                kept * entering + taken * old
            } else {
                kept * old + taken * entering
            };
            let ahead = if plan.mutation.named(OLD_BUFFER) { old } else { b[place] };
            direction = if nesterov && !plan.mutation.named(NOT_AHEAD) { gradient + kept * ahead } else { b[place] };
        }
        p[place] = p[place] - R::new(lr) * direction;
    }
    write(plan, &mut call.outputs[0], &p)?;
    write(plan, &mut call.outputs[1], &b)
}
