//! Selective scans: a recurrence step by step, or an associative scan over the sequence.

use gpuemu_engine::runner::{Invocation, RunnerError};
use gpuemu_engine::schema::SummationOrder;

use super::convolution::silu;
use crate::implementations::{Family, ORDERS};
use crate::kernel;
use crate::kernels::{Plan, add_up, elements, input, read, size, write};
use crate::mutation::{Mutated, Mutation};
use crate::real::Real;
use crate::style::ExpRoute;

/// The scans and their kernels.
pub fn families() -> Vec<Family> {
    let named = Mutation::Named;
    vec![
        Family::new(
            kernel!("selective_scan", selective_scan),
            &ORDERS,
            &[
                named("softplus left out"),
                named("half of the step in B"),
                named("state not carried past the first tile"),
                named("D after the gate"),
                named("gate by sigmoid"),
                Mutation::OffByOne,
                Mutation::SkipElement,
                Mutation::ScaleOutput(1.01),
            ],
        ),
        Family::new(
            kernel!("selective_state_update", selective_state_update),
            &ORDERS,
            &[
                named("softplus left out"),
                named("half of the step in B"),
                named("out from the state before"),
                named("D after the gate"),
                named("gate by sigmoid"),
                Mutation::SkipElement,
                Mutation::ScaleOutput(1.01),
            ],
        ),
    ]
}

/// Steps after which the mutant that forgets starts anew.
const TILE: usize = 16;

fn step_size<R: Real>(plan: &Plan, delta: R, bias: Option<R>, softplus: bool) -> R {
    let sum = bias.map_or(delta, |bias| delta + bias);
    if !softplus || plan.mutation.named("softplus left out") || sum > R::new(20.0) {
        return sum;
    }
    (R::one() + sum.exp(plan.style.exp)).ln()
}

/// exp(Δ·A): with A in units of log₂e beforehand where the style takes exp2.
fn decay<R: Real>(plan: &Plan, step: R, rate: R) -> R {
    match plan.style.exp {
        ExpRoute::Direct => (step * rate).exp(ExpRoute::Direct),
        route => (step * (rate * R::new(std::f64::consts::LOG2_E))).exp2(route),
    }
}

fn drive<R: Real>(plan: &Plan, step: R, gain: R, x: R) -> R {
    let step = if plan.mutation.named("half of the step in B") { R::new(0.5) * step } else { step };
    if plan.style.order == SummationOrder::Sequential { (step * gain) * x } else { (step * x) * gain }
}

/// All states of a recurrence x ← a·x + b: in sequence, or by doubling distances as a scan does.
fn states<R: Real>(plan: &Plan, decays: &[R], drives: &[R]) -> Vec<R> {
    let forgets = plan.mutation.named("state not carried past the first tile");
    if forgets || plan.style.order == SummationOrder::Sequential || decays.len() < 2 {
        let mut state = R::zero();
        let steps = decays.iter().zip(drives).enumerate();
        return steps
            .map(|(time, (a, b))| {
                let before = if forgets && time % TILE == 0 { R::zero() } else { state };
                state = *a * before + *b;
                state
            })
            .collect();
    }
    let (mut products, mut sums) = (decays.to_vec(), drives.to_vec());
    let mut distance = 1;
    while distance < products.len() {
        for index in (distance..products.len()).rev() {
            sums[index] = products[index] * sums[index - distance] + sums[index];
            products[index] = products[index] * products[index - distance];
        }
        distance *= 2;
    }
    sums
}

/// Σ C·x + D·u, gated.
fn finish<R: Real>(plan: &Plan, mut terms: Vec<R>, skip: Option<R>, x: R, gate: Option<R>) -> R {
    let late = plan.mutation.named("D after the gate");
    if plan.mutation.is(Mutation::SkipElement) && terms.len() > 1 {
        terms.remove(terms.len() / 2);
    }
    if let Some(skip) = skip.filter(|_| !late) {
        terms.insert(0, skip * x);
    }
    let y = add_up(plan, &terms);
    let gated = match gate {
        None => y,
        Some(z) if plan.mutation.named("gate by sigmoid") => {
            y * R::one().over(R::one() + (-z).exp(plan.style.exp), plan.style.division)
        }
        Some(z) => y * silu(plan, z),
    };
    match skip.filter(|_| late) {
        Some(skip) => gated + skip * x,
        None => gated,
    }
}

fn selective_scan<R: Real>(call: &mut Invocation<'_>, plan: &Plan) -> Result<(), RunnerError> {
    let (u, delta, rates): (Vec<R>, Vec<R>, Vec<R>) = (input(call, "u")?, input(call, "delta")?, input(call, "A")?);
    let (gains, mixes): (Vec<R>, Vec<R>) = (input(call, "B")?, input(call, "C")?);
    let (skips, gates): (Option<Vec<R>>, Option<Vec<R>>) = (elements(call, "D")?, elements(call, "z")?);
    let bias: Option<Vec<R>> = elements(call, "delta_bias")?;
    let softplus = call.parameters.flag("delta_softplus");
    let (channels, count, length) = (size(call, "E"), size(call, "S"), size(call, "L"));
    let late = usize::from(plan.mutation.is(Mutation::OffByOne));
    let mut values = Vec::with_capacity(u.len());
    for row in 0..size(call, "N") * channels {
        let (entry, channel) = (row / channels, row % channels);
        let (u, delta) = (&u[row * length..][..length], &delta[row * length..][..length]);
        let own_bias = bias.as_ref().map(|bias| bias[channel]);
        let steps: Vec<R> = delta.iter().map(|delta| step_size(plan, *delta, own_bias, softplus)).collect();
        let mut terms = vec![Vec::with_capacity(count + 1); length];
        for state in 0..count {
            let rate = rates[channel * count + state];
            let gains = &gains[(entry * count + state) * length..][..length];
            let mixes = &mixes[(entry * count + state) * length..][..length];
            let decays: Vec<R> = steps.iter().map(|step| decay(plan, *step, rate)).collect();
            let drives: Vec<R> = (0..length).map(|time| drive(plan, steps[time], gains[time], u[time])).collect();
            for (time, held) in states(plan, &decays, &drives).into_iter().enumerate() {
                terms[time].push(mixes[(time + late).min(length - 1)] * held);
            }
        }
        for (time, terms) in terms.into_iter().enumerate() {
            let gate = gates.as_ref().map(|gates| gates[row * length + time]);
            values.push(finish(plan, terms, skips.as_ref().map(|skips| skips[channel]), u[time], gate));
        }
    }
    write(plan, &mut call.outputs[0], &values)
}

fn selective_state_update<R: Real>(call: &mut Invocation<'_>, plan: &Plan) -> Result<(), RunnerError> {
    let (x, delta, rates): (Vec<R>, Vec<R>, Vec<R>) = (input(call, "x")?, input(call, "dt")?, input(call, "A")?);
    let (gains, mixes): (Vec<R>, Vec<R>) = (input(call, "B")?, input(call, "C")?);
    let (skips, gates): (Option<Vec<R>>, Option<Vec<R>>) = (elements(call, "D")?, elements(call, "z")?);
    let bias: Option<Vec<R>> = elements(call, "dt_bias")?;
    let softplus = call.parameters.flag("dt_softplus");
    let (channels, count) = (size(call, "E"), size(call, "S"));
    let mut held: Vec<R> = read(&call.outputs[1])?;
    let mut values = Vec::with_capacity(x.len());
    for (row, x) in x.iter().enumerate() {
        let (entry, channel) = (row / channels, row % channels);
        let step = step_size(plan, delta[row], bias.as_ref().map(|bias| bias[channel]), softplus);
        let mut terms = Vec::with_capacity(count + 1);
        for state in 0..count {
            let own = &mut held[row * count + state];
            let before = *own;
            let gain = gains[entry * count + state];
            *own = decay(plan, step, rates[channel * count + state]) * before + drive(plan, step, gain, *x);
            let used = if plan.mutation.named("out from the state before") { before } else { *own };
            terms.push(used * mixes[entry * count + state]);
        }
        let gate = gates.as_ref().map(|gates| gates[row]);
        values.push(finish(plan, terms, skips.as_ref().map(|skips| skips[channel]), *x, gate));
    }
    write(plan, &mut call.outputs[0], &values)?;
    // The state is stored as it is: only the result can be scaled.
    let unscaled = Plan { mutation: None, ..*plan };
    write(&unscaled, &mut call.outputs[1], &held)
}
