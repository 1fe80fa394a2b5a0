//! layernorm, rmsnorm and l2norm: one program per row, the whole row in registers.

use gpuemu_engine::runner::{Buffer, Invocation, RunnerError};
use gpuemu_engine::schema::VarianceForm;

use super::{Plan, add_up, load_row, optional, required, scaled};
use crate::memory::{Rows, load, store};
use crate::mutation::{Mutated, Mutation};
use crate::real::Real;

/// How eps keeps a divisor away from zero: added inside of the root, as most kernels do, or otherwise.
#[derive(Clone, Copy)]
struct Guard<R> {
    eps: R,
    outside: bool,
    minimum: bool,
}

impl<R: Real> Guard<R> {
    fn inside(eps: R) -> Self {
        Self { eps, outside: false, minimum: false }
    }

    fn apply(&self, x: R) -> R {
        // NaN compares as false and stays.
        match self.minimum {
            true if x < self.eps => self.eps,
            true => x,
            false => x + self.eps,
        }
    }
}

/// 1/√(x + eps), with the mutations of that expression.
pub(crate) fn inverse_root<R: Real>(plan: &Plan, power: R, eps: R) -> R {
    guarded_inverse(plan, power, Guard::inside(eps))
}

/// One over the guarded root of a power.
fn guarded_inverse<R: Real>(plan: &Plan, power: R, guard: Guard<R>) -> R {
    let divisor = if plan.mutation.is(Mutation::DropRoot) {
        guard.apply(power)
    } else if guard.outside != plan.mutation.is(Mutation::EpsOutside) {
        guard.apply(power.sqrt())
    } else {
        guard.apply(power).sqrt()
    };
    R::one().over(divisor, plan.style.division)
}

/// A weight or bias of a column; absent ones are `otherwise`.
fn column<R: Real>(buffer: Option<&Buffer>, column: usize, otherwise: R) -> Result<R, RunnerError> {
    match buffer {
        None => Ok(otherwise),
        Some(buffer) => load(buffer, buffer.offset() as isize + column as isize * buffer.strides()[0]),
    }
}

/// (x − μ)/√(v + eps)·w + b.
pub fn layernorm<R: Real>(call: &mut Invocation<'_>, plan: &Plan) -> Result<(), RunnerError> {
    let eps = R::new(call.parameters.float("eps").unwrap_or(1e-5) * plan.mutation.constant());
    let input = required(&call.inputs, 0)?;
    let (weight, bias) = (optional(&call.inputs, call.schema, "weight"), optional(&call.inputs, call.schema, "bias"));
    let rows = Rows::of(input);
    let output = &mut call.outputs[0];
    let out_rows = Rows::of(output);
    let count = R::new(rows.width as f64);
    for row in 0..rows.starts.len() {
        let lanes: Vec<R> = load_row(plan, input, &rows, row, R::zero())?;
        let (mean, variance) = moments(plan, &lanes, rows.width, count);
        let inverse = inverse_root(plan, variance, eps);
        for index in 0..rows.width {
            let x: R = load(input, rows.at(row, index))?;
            let normalised = if plan.mutation.is(Mutation::DropFactor) {
                x * inverse
            } else if plan.style.folded {
                x * inverse - mean * inverse
            } else {
                (x - mean) * inverse
            };
            let value = normalised * column(weight, index, R::one())? + column(bias, index, R::zero())?;
            store(output, out_rows.at(row, index), scaled(plan, value))?;
        }
    }
    Ok(())
}

/// Mean and variance in the kernel's form.
pub(crate) fn moments<R: Real>(plan: &Plan, lanes: &[R], width: usize, count: R) -> (R, R) {
    let divide = |total: R, by: R| total.over(by, plan.style.division);
    let divisor =
        if plan.mutation.is(Mutation::Unbiased) { R::new(width.saturating_sub(1).max(1) as f64) } else { count };
    let form = if plan.mutation.is(Mutation::OnePassVariance) { VarianceForm::OnePass } else { plan.style.variance };
    if form == VarianceForm::Welford {
        let (mut mean, mut squares) = (R::zero(), R::zero());
        for (index, x) in lanes.iter().enumerate() {
            let delta = *x - mean;
            mean = mean + divide(delta, R::new(index as f64 + 1.0));
            squares = squares + delta * (*x - mean);
        }
        return (mean, divide(squares, divisor));
    }
    let mean = divide(add_up(plan, lanes), count);
    if form == VarianceForm::OnePass {
        let squares: Vec<R> = lanes.iter().map(|x| *x * *x).collect();
        let variance = divide(add_up(plan, &squares), divisor) - mean * mean;
        // Rounding may make it negative; NaN stays NaN.
        return (mean, if variance < R::zero() { R::zero() } else { variance });
    }
    let deviations: Vec<R> = lanes.iter().map(|x| (*x - mean) * (*x - mean)).collect();
    (mean, divide(add_up(plan, &deviations), divisor))
}

fn divide_by_length<R: Real>(
    call: &mut Invocation<'_>,
    plan: &Plan,
    guard: Guard<R>,
    mean: bool,
    weight_offset: R,
) -> Result<(), RunnerError> {
    let input = required(&call.inputs, 0)?;
    let weight = optional(&call.inputs, call.schema, "weight");
    let rows = Rows::of(input);
    let output = &mut call.outputs[0];
    let out_rows = Rows::of(output);
    for row in 0..rows.starts.len() {
        let lanes: Vec<R> = load_row(plan, input, &rows, row, R::zero())?;
        let squares: Vec<R> = lanes.iter().map(|x| *x * *x).collect();
        let count = match plan.mutation {
            Some(Mutation::PadZero(_)) => lanes.len(),
            Some(Mutation::Unbiased) => rows.width.saturating_sub(1).max(1),
            _ => rows.width,
        };
        let total = add_up(plan, &squares);
        let power = if mean { total.over(R::new(count as f64), plan.style.division) } else { total };
        let inverse = guarded_inverse(plan, power, guard);
        for index in 0..rows.width {
            let x: R = load(input, rows.at(row, index))?;
            let scale = match weight {
                None => R::one(),
                Some(_) => weight_offset + column(weight, index, R::one())?,
            };
            store(output, out_rows.at(row, index), scaled(plan, x * inverse * scale))?;
        }
    }
    Ok(())
}

/// x/√(mean x² + eps)·w.
pub fn rmsnorm<R: Real>(call: &mut Invocation<'_>, plan: &Plan) -> Result<(), RunnerError> {
    let eps = R::new(call.parameters.float("eps").unwrap_or(1e-5) * plan.mutation.constant());
    let offset = call.parameters.flag("unit_offset") && !plan.mutation.is(Mutation::DropFactor);
    divide_by_length(call, plan, Guard::inside(eps), true, if offset { R::one() } else { R::zero() })
}

/// x/√(Σx² + eps), or with eps outside of the root or as a minimum.
pub fn l2norm<R: Real>(call: &mut Invocation<'_>, plan: &Plan) -> Result<(), RunnerError> {
    let eps = R::new(call.parameters.float("eps").unwrap_or(1e-12) * plan.mutation.constant());
    let minimum = call.parameters.flag("eps_is_minimum") != plan.mutation.named("eps added in place of a minimum");
    let guard = Guard { eps, outside: call.parameters.flag("eps_outside"), minimum };
    divide_by_length(call, plan, guard, false, R::zero())
}
