//! Losses.

use gpuemu_engine::runner::{Invocation, RunnerError};
use gpuemu_tensor::DType;

use crate::implementations::{Family, ORDERS, ROUTES};
use crate::kernel;
use crate::kernels::softmax::smooth;
use crate::kernels::{Plan, add_up, elements, input, size, write};
use crate::mutation::{Mutated, Mutation};
use crate::real::Real;
use crate::style::Division;

const SCALE: Mutation = Mutation::ScaleOutput(1.01);
const NARROW: Mutation = Mutation::NarrowAccumulator(DType::BF16);
const TAIL: Mutation = Mutation::DropTail(32);

/// The ops of this group and their kernels.
pub fn families() -> Vec<Family> {
    let named = Mutation::Named;
    vec![
        Family::new(
            kernel!("cross_entropy_mean", cross_entropy_mean),
            &ORDERS,
            &[
                named("divided by all rows"),
                named("ignored rows counted"),
                named("smoothing leaves the target out"),
                Mutation::OffByOne,
                Mutation::SkipElement,
                TAIL,
                NARROW,
                SCALE,
            ],
        ),
        Family::new(
            kernel!("fused_linear_cross_entropy", fused_linear_cross_entropy),
            &ORDERS,
            &[
                named("divided by all rows"),
                named("ignored rows counted"),
                named("bias missing"),
                named("weight transposed"),
                Mutation::OffByOne,
                TAIL,
                NARROW,
                SCALE,
            ],
        ),
        Family::new(
            kernel!("nll_loss", nll_loss),
            &ORDERS,
            &[
                named("divided by the rows"),
                named("ignored rows counted"),
                named("weight missing"),
                Mutation::OffByOne,
                Mutation::FlipSign,
                TAIL,
                NARROW,
                SCALE,
            ],
        ),
        Family::new(
            kernel!("kl_div", kl_div),
            &ROUTES,
            &[named("0*log(0)"), named("log_target ignored"), Mutation::FlipSign, Mutation::ScaleArgument(1.01), SCALE],
        ),
        Family::new(
            kernel!("kl_div_batchmean", kl_div_batchmean),
            &ORDERS,
            &[
                named("0*log(0)"),
                named("log_target ignored"),
                named("divided by the elements"),
                Mutation::SkipElement,
                TAIL,
                NARROW,
                SCALE,
            ],
        ),
        Family::new(
            kernel!("mse_loss", mse_loss),
            &ORDERS,
            &[
                named("half of the square"),
                named("divided by the width"),
                Mutation::Unbiased,
                Mutation::SkipElement,
                TAIL,
                NARROW,
                SCALE,
            ],
        ),
        Family::new(
            kernel!("mse_loss_none", mse_loss_none),
            &ROUTES,
            &[named("half of the square"), named("absolute value"), named("x*x - t*t"), Mutation::OffByOne, SCALE],
        ),
        Family::new(
            kernel!("smooth_l1_loss", smooth_l1_loss),
            &ORDERS,
            &[
                named("beta is 1"),
                named("square not divided"),
                named("line not lowered"),
                named("divided by the width"),
                TAIL,
                NARROW,
                SCALE,
            ],
        ),
        Family::new(
            kernel!("huber_loss", huber_loss),
            &ORDERS,
            &[
                named("delta is 1"),
                named("line not steep"),
                named("line not lowered"),
                named("divided by the width"),
                TAIL,
                NARROW,
                SCALE,
            ],
        ),
        Family::new(
            kernel!("binary_cross_entropy_with_logits", binary_cross_entropy),
            &ORDERS,
            &[
                named("log of the sigmoid"),
                named("target swapped"),
                named("weight on both parts"),
                named("divided by the width"),
                TAIL,
                NARROW,
                SCALE,
            ],
        ),
    ]
}

/// The terms of a reduction that a kernel takes: all, unless it is wrong about them.
fn taken<R: Real>(plan: &Plan, mut terms: Vec<R>) -> Vec<R> {
    match plan.mutation {
        Some(Mutation::DropTail(tile)) if terms.len() > tile => terms.truncate(terms.len() / tile * tile),
        Some(Mutation::SkipElement) if terms.len() > 1 => {
            terms.remove(terms.len() / 2);
        }
        _ => {}
    }
    terms
}

fn finish<R: Real>(call: &mut Invocation<'_>, plan: &Plan, value: R) -> Result<(), RunnerError> {
    write(plan, &mut call.outputs[0], &[value])
}

/// Losses of the rows that count, and how many rows there are.
struct Rows<'a> {
    plan: &'a Plan,
    smoothing: f64,
    ignored: f64,
    /// Whether the kernel is wrong about ignored rows. Where no other row is, the mean is NaN by right.
    counts_ignored: bool,
}

impl<'a> Rows<'a> {
    fn of(call: &Invocation<'_>, plan: &'a Plan, targets: &[f64]) -> Self {
        let ignored = call.parameters.int("ignore_index").unwrap_or(-100) as f64;
        Self {
            plan,
            smoothing: call.parameters.float("label_smoothing").unwrap_or(0.0),
            ignored,
            counts_ignored: plan.mutation.named("ignored rows counted")
                && targets.iter().any(|target| *target != ignored),
        }
    }

    /// The place of a target in its row, nothing where it is ignored.
    fn class(&self, target: f64, width: usize) -> Option<usize> {
        if target == self.ignored && !self.counts_ignored {
            return None;
        }
        let shift = usize::from(self.plan.mutation.is(Mutation::OffByOne));
        Some((target.max(0.0) as usize + shift) % width.max(1))
    }

    fn loss<R: Real>(&self, logits: &[R], class: usize) -> R {
        let Plan { style, .. } = self.plan;
        let mut maximum = logits.iter().fold(R::lowest(), |most, x| most.larger(*x));
        if logits.iter().any(|x| x.is_nan()) {
            maximum = R::new(f64::NAN);
        }
        let powers: Vec<R> = logits.iter().map(|x| (*x - maximum).exp(style.exp)).collect();
        let lse = maximum + add_up(self.plan, &taken(self.plan, powers)).ln();
        let of_target = lse - logits[class];
        if self.smoothing == 0.0 {
            return of_target;
        }
        let mut others = logits.to_vec();
        if self.plan.mutation.named("smoothing leaves the target out") && others.len() > 1 {
            others.remove(class);
        }
        let share = R::new(self.smoothing / others.len() as f64);
        R::new(1.0 - self.smoothing) * of_target + smooth(self.plan, &others, share, lse)
    }

    /// The mean of losses. Liger divides each of them, PyTorch their sum.
    fn mean<R: Real>(&self, losses: &[R], rows: usize) -> R {
        let count = if self.plan.mutation.named("divided by all rows") { rows } else { losses.len() };
        let (count, division) = (R::new(count as f64), self.plan.style.division);
        if division == Division::Reciprocal && !losses.is_empty() {
            let divided: Vec<R> = losses.iter().map(|loss| loss.over(count, division)).collect();
            return add_up(self.plan, &divided);
        }
        add_up(self.plan, losses).over(count, division)
    }
}

fn cross_entropy_mean<R: Real>(call: &mut Invocation<'_>, plan: &Plan) -> Result<(), RunnerError> {
    let (logits, targets): (Vec<R>, Vec<f64>) = (input(call, "input")?, input(call, "target")?);
    let (rows, width) = (Rows::of(call, plan, &targets), size(call, "V").max(1));
    let mut losses = Vec::new();
    for (row, target) in logits.chunks(width).zip(&targets) {
        losses.extend(rows.class(*target, width).map(|class| rows.loss(row, class)));
    }
    let mean = rows.mean(&losses, targets.len());
    finish(call, plan, mean)
}

fn fused_linear_cross_entropy<R: Real>(call: &mut Invocation<'_>, plan: &Plan) -> Result<(), RunnerError> {
    let (hidden, weight): (Vec<R>, Vec<R>) = (input(call, "input")?, input(call, "weight")?);
    let (bias, targets): (Option<Vec<R>>, Vec<f64>) = (elements(call, "bias")?, input(call, "target")?);
    let (rows, inner, classes) = (Rows::of(call, plan, &targets), size(call, "H"), size(call, "V"));
    let (down, along) = if plan.mutation.named("weight transposed") { (1, classes) } else { (inner, 1) };
    let mut losses = Vec::new();
    for (row, target) in hidden.chunks(inner.max(1)).zip(&targets) {
        let Some(class) = rows.class(*target, classes) else { continue };
        let mut logits = Vec::with_capacity(classes);
        for c in 0..classes {
            let products = row.iter().enumerate().map(|(k, x)| *x * weight[c * down + k * along]);
            let mut terms = taken(plan, products.collect());
            // The accumulator starts from the bias.
            if let Some(bias) = bias.as_ref().filter(|_| !plan.mutation.named("bias missing")) {
                terms.insert(0, bias[c]);
            }
            logits.push(add_up(plan, &terms));
        }
        losses.push(rows.loss(&logits, class));
    }
    let mean = rows.mean(&losses, targets.len());
    finish(call, plan, mean)
}

fn nll_loss<R: Real>(call: &mut Invocation<'_>, plan: &Plan) -> Result<(), RunnerError> {
    let (given, targets): (Vec<R>, Vec<f64>) = (input(call, "input")?, input(call, "target")?);
    let weight: Option<Vec<R>> = elements(call, "weight")?;
    let weight = weight.filter(|_| !plan.mutation.named("weight missing"));
    let (rows, width) = (Rows::of(call, plan, &targets), size(call, "V").max(1));
    let (mut losses, mut weights) = (Vec::new(), Vec::new());
    for (row, target) in given.chunks(width).zip(&targets) {
        let Some(class) = rows.class(*target, width) else { continue };
        let own = weight.as_ref().map_or(R::one(), |weight| weight[class]);
        losses.push(own * if plan.mutation.is(Mutation::FlipSign) { row[class] } else { -row[class] });
        weights.push(own);
    }
    let divisor =
        if plan.mutation.named("divided by the rows") { R::new(weights.len() as f64) } else { add_up(plan, &weights) };
    let mean = add_up(plan, &taken(plan, losses)).over(divisor, plan.style.division);
    finish(call, plan, mean)
}

fn divergences<R: Real>(call: &Invocation<'_>, plan: &Plan) -> Result<Vec<R>, RunnerError> {
    let (given, targets): (Vec<R>, Vec<R>) = (input(call, "input")?, input(call, "target")?);
    let logarithms = call.parameters.flag("log_target") && !plan.mutation.named("log_target ignored");
    let argument = R::new(plan.mutation.argument());
    let one = |(x, t): (&R, &R)| {
        let x = *x * argument;
        let sign = if plan.mutation.is(Mutation::FlipSign) { -R::one() } else { R::one() };
        if logarithms {
            return t.exp(plan.style.exp) * (*t - sign * x);
        }
        if *t == R::zero() && !plan.mutation.named("0*log(0)") {
            return *t * x;
        }
        match plan.style.division {
            Division::Exact => *t * t.ln() - sign * *t * x,
            _ => *t * (t.ln() - sign * x),
        }
    };
    Ok(given.iter().zip(&targets).map(one).collect())
}

fn kl_div<R: Real>(call: &mut Invocation<'_>, plan: &Plan) -> Result<(), RunnerError> {
    let values: Vec<R> = divergences(call, plan)?;
    write(plan, &mut call.outputs[0], &values)
}

fn kl_div_batchmean<R: Real>(call: &mut Invocation<'_>, plan: &Plan) -> Result<(), RunnerError> {
    let values: Vec<R> = divergences(call, plan)?;
    let count = if plan.mutation.named("divided by the elements") { values.len() } else { size(call, "N") };
    let mean = add_up(plan, &taken(plan, values)).over(R::new(count as f64), plan.style.division);
    finish(call, plan, mean)
}

/// The mean of a loss over pairs of elements.
fn average<R: Real>(
    call: &mut Invocation<'_>,
    plan: &Plan,
    loss: impl Fn(R, R, usize) -> R,
) -> Result<(), RunnerError> {
    let (given, targets): (Vec<R>, Vec<R>) = (input(call, "input")?, input(call, "target")?);
    let (total, width) = (given.len(), size(call, "H"));
    let pairs = given.iter().zip(&targets).enumerate();
    let losses: Vec<R> = pairs.map(|(index, (x, t))| loss(*x, *t, index % width.max(1))).collect();
    let count = match plan.mutation {
        Some(Mutation::Unbiased) => total.saturating_sub(1),
        _ if plan.mutation.named("divided by the width") => width,
        _ => total,
    };
    let mean = add_up(plan, &taken(plan, losses)).over(R::new(count as f64), plan.style.division);
    finish(call, plan, mean)
}

fn mse_loss<R: Real>(call: &mut Invocation<'_>, plan: &Plan) -> Result<(), RunnerError> {
    let factor = if plan.mutation.named("half of the square") { R::new(0.5) } else { R::one() };
    average(call, plan, |x: R, t, _| factor * ((x - t) * (x - t)))
}

fn mse_loss_none<R: Real>(call: &mut Invocation<'_>, plan: &Plan) -> Result<(), RunnerError> {
    let (given, targets): (Vec<R>, Vec<R>) = (input(call, "input")?, input(call, "target")?);
    let shift = usize::from(plan.mutation.is(Mutation::OffByOne));
    let one = |(index, x): (usize, &R)| {
        let t = targets[(index + shift) % targets.len().max(1)];
        let difference = *x - t;
        if plan.mutation.named("half of the square") {
            R::new(0.5) * difference * difference
        } else if plan.mutation.named("absolute value") {
            difference.abs()
        } else if plan.mutation.named("x*x - t*t") {
            *x * *x - t * t
        } else {
            difference * difference
        }
    };
    let values: Vec<R> = given.iter().enumerate().map(one).collect();
    write(plan, &mut call.outputs[0], &values)
}

fn smooth_l1_loss<R: Real>(call: &mut Invocation<'_>, plan: &Plan) -> Result<(), RunnerError> {
    let beta = call.parameters.float("beta").unwrap_or(1.0);
    let beta = R::new(if plan.mutation.named("beta is 1") { 1.0 } else { beta });
    let (half, division) = (R::new(0.5), plan.style.division);
    average(call, plan, |x: R, t, _| {
        let distance = (x - t).abs();
        if distance < beta {
            let square = half * distance * distance;
            if plan.mutation.named("square not divided") { square } else { square.over(beta, division) }
        } else if plan.mutation.named("line not lowered") {
            distance
        } else {
            distance - half * beta
        }
    })
}

fn huber_loss<R: Real>(call: &mut Invocation<'_>, plan: &Plan) -> Result<(), RunnerError> {
    let delta = call.parameters.float("delta").unwrap_or(1.0);
    let delta = R::new(if plan.mutation.named("delta is 1") { 1.0 } else { delta });
    let half = R::new(0.5);
    average(call, plan, |x: R, t, _| {
        let distance = (x - t).abs();
        let lowered = if plan.mutation.named("line not lowered") { distance } else { distance - half * delta };
        if distance <= delta {
            half * distance * distance
        } else if plan.mutation.named("line not steep") {
            lowered
        } else {
            delta * lowered
        }
    })
}

fn binary_cross_entropy<R: Real>(call: &mut Invocation<'_>, plan: &Plan) -> Result<(), RunnerError> {
    let weight: Option<Vec<R>> = elements(call, "pos_weight")?;
    let style = plan.style;
    let one = R::one();
    average(call, plan, |x: R, t, column| {
        let t = if plan.mutation.named("target swapped") { one - t } else { t };
        let more = weight.as_ref().map(|weight| one + (weight[column] - one) * t);
        let decayed = (-x.abs()).exp(style.exp);
        let logarithm = (one + decayed).ln();
        if plan.mutation.named("log of the sigmoid") {
            let probability = one.over(one + (-x).exp(style.exp), style.division);
            let positive = weight.as_ref().map_or(t, |weight| weight[column] * t);
            return -(positive * probability.ln()) - (one - t) * (one - probability).ln();
        }
        if plan.mutation.named("weight on both parts") {
            return (x.larger(R::zero()) - x * t + logarithm) * more.unwrap_or(one);
        }
        match more {
            None if style.division == Division::Exact => x.larger(R::zero()) - x * t + logarithm,
            None => (one - t) * x + (logarithm + (-x).larger(R::zero())),
            Some(more) => (one - t) * x + more * (logarithm + (-x).larger(R::zero())),
        }
    })
}
