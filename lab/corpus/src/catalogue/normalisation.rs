//! Norms beyond rows, with a residual, and in place.

use gpuemu_engine::runner::{Invocation, RunnerError};
use gpuemu_tensor::DType;

use crate::implementations::{FOLDED, Family, ORDERS, VARIANCES};
use crate::kernel;
use crate::kernels::normalisation::{inverse_root, moments};
use crate::kernels::softmax::exponentials;
use crate::kernels::{Plan, add_up, elements, input, read, size, write};
use crate::mutation::{Mutated, Mutation};
use crate::real::Real;
use crate::style::{Division, Style};

const NEXT_CHANNEL: &str = "weight and bias of the next channel";
const BIAS_SCALED: &str = "bias scaled too";
const OLD_RESIDUAL: &str = "residual stored as it was";
const INPUT_ALONE: &str = "input normalised without its residual";
const READ_AGAIN: &str = "first half overwritten before the sum is taken";

const MOMENTS: [Mutation; 7] = [
    Mutation::DropRoot,
    Mutation::Unbiased,
    Mutation::DropFactor,
    Mutation::Constant(10.0),
    Mutation::EpsOutside,
    Mutation::DropTail(32),
    Mutation::ScaleOutput(1.01),
];

/// The ops of this group and their kernels.
pub fn families() -> Vec<Family> {
    let with = |shared: &[Mutation], own: &[Mutation]| [own, shared].concat();
    let channels = with(&MOMENTS, &[Mutation::Named(NEXT_CHANNEL), Mutation::PadZero(128), Mutation::SkipElement]);
    let residual = [Mutation::Named(OLD_RESIDUAL), Mutation::Named(INPUT_ALONE), Mutation::SkipElement];
    let direct = Style { folded: true, ..Style::TRITON };
    vec![
        Family::new(
            kernel!("batch_norm", batch_norm),
            &[Style::NUMPY, direct, Style::TRITON, Style { division: Division::Reciprocal, ..direct }],
            &[
                Mutation::DropRoot,
                Mutation::EpsOutside,
                Mutation::Constant(10.0),
                Mutation::DropFactor,
                Mutation::Named(NEXT_CHANNEL),
                Mutation::Named(BIAS_SCALED),
                Mutation::ScaleOutput(1.01),
            ],
        ),
        Family::new(kernel!("groupnorm", groupnorm), &VARIANCES, &channels),
        Family::new(kernel!("instance_norm", instance_norm), &VARIANCES, &channels),
        Family::new(
            kernel!("fused_add_layernorm", fused_add_layernorm),
            &VARIANCES,
            &with(&MOMENTS, &[residual[0], residual[1], residual[2], Mutation::PadZero(128)]),
        ),
        Family::new(
            kernel!("fused_add_rmsnorm", fused_add_rmsnorm),
            &ORDERS,
            &with(
                &residual,
                &[
                    Mutation::DropRoot,
                    Mutation::EpsOutside,
                    Mutation::Constant(10.0),
                    Mutation::DropFactor,
                    Mutation::DropTail(32),
                    Mutation::NarrowAccumulator(DType::BF16),
                    Mutation::ScaleOutput(1.01),
                ],
            ),
        ),
        Family::new(
            kernel!("softmax_", softmax_in_place),
            &[ORDERS[0], ORDERS[1], ORDERS[2], ORDERS[3], ORDERS[4], FOLDED],
            &[
                Mutation::Named(READ_AGAIN),
                Mutation::DropMaximum,
                Mutation::ScaleArgument(1.01),
                Mutation::PadZero(128),
                Mutation::DropTail(32),
                Mutation::SkipElement,
                Mutation::NarrowAccumulator(DType::BF16),
                Mutation::ScaleOutput(1.01),
            ],
        ),
    ]
}

/// A row as it enters a reduction: tampered with where that is the mutation.
pub(super) fn reduced<R: Real>(plan: &Plan, row: &[R], neutral: R) -> Vec<R> {
    let (mut lanes, width) = (row.to_vec(), row.len());
    match plan.mutation {
        Some(Mutation::PadZero(multiple)) => lanes.resize(width.next_multiple_of(multiple.max(1)), R::zero()),
        Some(Mutation::DropTail(tile)) if width > tile => lanes[width / tile * tile..].fill(neutral),
        Some(Mutation::SkipElement) if width > 1 => lanes[width / 2] = neutral,
        _ => {}
    }
    lanes
}

fn epsilon<R: Real>(call: &Invocation<'_>, plan: &Plan) -> R {
    R::new(call.parameters.float("eps").unwrap_or(1e-5) * plan.mutation.constant())
}

/// (x − μ)·r in the kernel's form.
fn centred<R: Real>(plan: &Plan, x: R, mean: R, inverse: R) -> R {
    if plan.mutation.is(Mutation::DropFactor) {
        x * inverse
    } else if plan.style.folded {
        x * inverse - mean * inverse
    } else {
        (x - mean) * inverse
    }
}

/// A row normalised by its own moments.
fn normalised<R: Real>(plan: &Plan, row: &[R], eps: R) -> Vec<R> {
    let (mean, variance) = moments(plan, &reduced(plan, row, R::zero()), row.len(), R::new(row.len() as f64));
    let inverse = inverse_root(plan, variance, eps);
    row.iter().map(|x| centred(plan, *x, mean, inverse)).collect()
}

fn by_channel<R: Real>(call: &mut Invocation<'_>, plan: &Plan, width: usize) -> Result<(), RunnerError> {
    let (eps, positions) = (epsilon::<R>(call, plan), size(call, "L"));
    let x: Vec<R> = input(call, "input")?;
    let (weight, bias) = (elements::<R>(call, "weight")?, elements::<R>(call, "bias")?);
    let channels = call.outputs[0].shape().get(1).copied().unwrap_or(0);
    let shift = usize::from(plan.mutation.named(NEXT_CHANNEL));
    let mut out = Vec::with_capacity(x.len());
    for group in x.chunks(width.max(1)) {
        for value in normalised(plan, group, eps) {
            let channel = (out.len() / positions.max(1) + shift) % channels.max(1);
            let scaled = weight.as_ref().map_or(value, |weight| value * weight[channel]);
            out.push(bias.as_ref().map_or(scaled, |bias| scaled + bias[channel]));
        }
    }
    write(plan, &mut call.outputs[0], &out)
}

fn groupnorm<R: Real>(call: &mut Invocation<'_>, plan: &Plan) -> Result<(), RunnerError> {
    by_channel::<R>(call, plan, size(call, "C") * size(call, "L"))
}

fn instance_norm<R: Real>(call: &mut Invocation<'_>, plan: &Plan) -> Result<(), RunnerError> {
    by_channel::<R>(call, plan, size(call, "L"))
}

fn batch_norm<R: Real>(call: &mut Invocation<'_>, plan: &Plan) -> Result<(), RunnerError> {
    let (eps, channels, positions) = (epsilon::<R>(call, plan), size(call, "C"), size(call, "L"));
    let x: Vec<R> = input(call, "input")?;
    let (mean, variance): (Vec<R>, Vec<R>) = (input(call, "running_mean")?, input(call, "running_var")?);
    let (weight, bias) = (elements::<R>(call, "weight")?, elements::<R>(call, "bias")?);
    let shift = usize::from(plan.mutation.named(NEXT_CHANNEL));
    let mut out = Vec::with_capacity(x.len());
    for (index, x) in x.iter().enumerate() {
        let channel = index / positions.max(1) % channels.max(1);
        let affine = (channel + shift) % channels.max(1);
        let w = weight.as_ref().map_or(R::one(), |weight| weight[affine]);
        let b = bias.as_ref().map_or(R::zero(), |bias| bias[affine]);
        let inverse = inverse_root(plan, variance[channel], eps);
        let scale = inverse * w;
        out.push(if plan.mutation.is(Mutation::DropFactor) {
            *x * scale + b
        } else if plan.mutation.named(BIAS_SCALED) {
            ((*x - mean[channel]) * inverse + b) * w
        } else if plan.style.folded {
            *x * scale + (b - mean[channel] * scale)
        } else {
            (*x - mean[channel]) * inverse * w + b
        });
    }
    write(plan, &mut call.outputs[0], &out)
}

/// input + residual: what is stored, and what is normalised.
fn with_residual<R: Real>(call: &Invocation<'_>, plan: &Plan, x: &[R], r: &[R]) -> (Vec<R>, Vec<R>) {
    let dtype = call.dtype;
    let round = |value: f64| R::new(dtype.decode(dtype.encode(value)));
    let sums: Vec<R> = x.iter().zip(r).map(|(x, r)| *x + *r).collect();
    let taken = if plan.mutation.named(INPUT_ALONE) {
        x.to_vec()
    } else if !call.parameters.flag("round_residual") {
        sums.clone()
    } else if plan.style.division == Division::Exact {
        // An addition in the dtype itself rounds once; one in float32 twice.
        x.iter().zip(r).map(|(x, r)| round(x.value() + r.value())).collect()
    } else {
        sums.iter().map(|sum| round(sum.value())).collect()
    };
    (if plan.mutation.named(OLD_RESIDUAL) { r.to_vec() } else { sums }, taken)
}

fn fused_add_layernorm<R: Real>(call: &mut Invocation<'_>, plan: &Plan) -> Result<(), RunnerError> {
    let (eps, width) = (epsilon::<R>(call, plan), size(call, "H"));
    let (x, r): (Vec<R>, Vec<R>) = (input(call, "input")?, input(call, "residual")?);
    let (weight, bias) = (elements::<R>(call, "weight")?, elements::<R>(call, "bias")?);
    let (stored, taken) = with_residual(call, plan, &x, &r);
    let mut out = Vec::with_capacity(x.len());
    for row in taken.chunks(width.max(1)) {
        for (column, value) in normalised(plan, row, eps).into_iter().enumerate() {
            let scaled = weight.as_ref().map_or(value, |weight| value * weight[column]);
            out.push(bias.as_ref().map_or(scaled, |bias| scaled + bias[column]));
        }
    }
    write(plan, &mut call.outputs[0], &out)?;
    write(plan, &mut call.outputs[1], &stored)
}

fn fused_add_rmsnorm<R: Real>(call: &mut Invocation<'_>, plan: &Plan) -> Result<(), RunnerError> {
    let (eps, width) = (epsilon::<R>(call, plan), size(call, "H"));
    let (x, r): (Vec<R>, Vec<R>) = (read(&call.outputs[0])?, read(&call.outputs[1])?);
    let weight: Vec<R> = input(call, "weight")?;
    let offset = call.parameters.flag("unit_offset") && !plan.mutation.is(Mutation::DropFactor);
    let offset = if offset { R::one() } else { R::zero() };
    let (stored, taken) = with_residual(call, plan, &x, &r);
    let mut out = Vec::with_capacity(x.len());
    for row in taken.chunks(width.max(1)) {
        let squares: Vec<R> = reduced(plan, row, R::zero()).iter().map(|x| *x * *x).collect();
        let power = add_up(plan, &squares).over(R::new(width as f64), plan.style.division);
        let inverse = inverse_root(plan, power, eps);
        out.extend(row.iter().zip(&weight).map(|(x, w)| *x * inverse * (offset + *w)));
    }
    write(plan, &mut call.outputs[0], &out)?;
    write(plan, &mut call.outputs[1], &stored)
}

fn softmax_in_place<R: Real>(call: &mut Invocation<'_>, plan: &Plan) -> Result<(), RunnerError> {
    let x: Vec<R> = read(&call.outputs[0])?;
    let width = size(call, "H");
    let mut out = Vec::with_capacity(x.len());
    for row in x.chunks(width.max(1)) {
        let (mut terms, maximum) = exponentials(plan, &reduced(plan, row, R::lowest()));
        let mut denominators = terms.clone();
        if plan.mutation.named(READ_AGAIN) {
            for term in &mut denominators[..width / 2] {
                *term = (*term - maximum).exp(plan.style.exp);
            }
        }
        let total = add_up(plan, &denominators);
        terms.truncate(width);
        out.extend(terms.into_iter().map(|term| term.over(total, plan.style.division)));
    }
    write(plan, &mut call.outputs[0], &out)
}
