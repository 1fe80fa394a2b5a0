//! Flat kernels: a program per block of elements, masked at the end.

use gpuemu_engine::runner::{Buffer, Invocation, RunnerError};

use super::{Plan, required, scaled};
use crate::memory::{load, positions, store};
use crate::mutation::{Mutated, Mutation};
use crate::real::Real;
use crate::style::{Style, TanhRoute};

/// Where the elements of a tensor lie; beyond the end a contiguous layout goes on.
struct Flat<'a> {
    buffer: &'a Buffer,
    positions: Vec<isize>,
}

impl<'a> Flat<'a> {
    fn of(buffer: &'a Buffer) -> Self {
        Self { positions: positions(buffer), buffer }
    }

    fn load<R: Real>(&self, element: usize) -> Result<R, RunnerError> {
        let beyond = || self.buffer.offset() as isize + element as isize;
        load(self.buffer, self.positions.get(element).copied().unwrap_or_else(beyond))
    }
}

/// Elements that programs touch: all of them, or whole blocks where the mask is missing.
fn touched(plan: &Plan, count: usize) -> usize {
    if plan.mutation.is(Mutation::DropMask) { count.next_multiple_of(plan.style.block) } else { count }
}

fn unary<R: Real>(call: &mut Invocation<'_>, plan: &Plan, formula: impl Fn(R) -> R) -> Result<(), RunnerError> {
    let input = Flat::of(required(&call.inputs, 0)?);
    let output = &mut call.outputs[0];
    for element in 0..touched(plan, input.positions.len()) {
        let value = formula(input.load(element)?);
        store(output, (output.offset() + element) as isize, scaled(plan, value))?;
    }
    Ok(())
}

/// max(x, 0), or a select.
pub fn relu<R: Real>(call: &mut Invocation<'_>, plan: &Plan) -> Result<(), RunnerError> {
    // A constant of 0 is changed by adding to it.
    let threshold = R::new(plan.mutation.constant() - 1.0);
    let select = plan.style.exp == crate::style::ExpRoute::Direct;
    unary(call, plan, |x: R| {
        if x.is_nan() {
            x
        } else if select {
            if x > threshold { x } else { R::zero() }
        } else {
            x.larger(threshold)
        }
    })
}

/// x, or slope·x.
pub fn leaky_relu<R: Real>(call: &mut Invocation<'_>, plan: &Plan) -> Result<(), RunnerError> {
    let slope = R::new(call.parameters.float("negative_slope").unwrap_or(0.01) * plan.mutation.constant());
    // max(x, slope*x) is the same for slopes below one, and as common as a select.
    let select = plan.style.exp == crate::style::ExpRoute::Direct || slope >= R::one();
    unary(call, plan, |x: R| {
        if x.is_nan() || select && x > R::zero() {
            x
        } else if select {
            slope * x
        } else {
            x.larger(slope * x)
        }
    })
}

/// x, or alpha·(eˣ − 1).
pub fn elu<R: Real>(call: &mut Invocation<'_>, plan: &Plan) -> Result<(), RunnerError> {
    let alpha = R::new(call.parameters.float("alpha").unwrap_or(1.0) * plan.mutation.constant());
    let argument = R::new(plan.mutation.argument());
    let one = if plan.mutation.is(Mutation::DropFactor) { R::zero() } else { R::one() };
    let style = plan.style;
    unary(
        call,
        plan,
        |x: R| {
            if x.is_nan() || x > R::zero() { x } else { alpha * ((x * argument).exp(style.exp) - one) }
        },
    )
}

/// 1/(1 + e⁻ˣ) by the routes of a style.
pub(crate) fn logistic<R: Real>(x: R, style: &Style) -> R {
    R::one().over(R::one() + (-x).exp(style.exp), style.division)
}

/// 1/(1 + e⁻ˣ).
pub fn sigmoid<R: Real>(call: &mut Invocation<'_>, plan: &Plan) -> Result<(), RunnerError> {
    let argument = R::new(plan.mutation.argument() * plan.mutation.constant());
    let style = plan.style;
    let flipped = plan.mutation.is(Mutation::FlipSign);
    unary(call, plan, |x: R| logistic(if flipped { -x } else { x * argument }, &style))
}

/// x·σ(x).
pub fn silu<R: Real>(call: &mut Invocation<'_>, plan: &Plan) -> Result<(), RunnerError> {
    let argument = R::new(plan.mutation.argument() * plan.mutation.constant());
    let (style, bare) = (plan.style, plan.mutation.is(Mutation::DropFactor));
    unary(call, plan, |x: R| {
        let gate = logistic(x * argument, &style);
        if bare { gate } else { x * gate }
    })
}

/// tanh x by the routes of a style.
pub(crate) fn hyperbolic<R: Real>(x: R, style: &Style) -> R {
    let two = R::new(2.0);
    match style.tanh {
        TanhRoute::Direct => x.tanh(),
        TanhRoute::Sigmoid => two * logistic(two * x, style) - R::one(),
        TanhRoute::Quotient => {
            let e = (-(two * x.abs())).exp(style.exp);
            let magnitude = (R::one() - e).over(R::one() + e, style.division);
            if x < R::zero() { -magnitude } else { magnitude }
        }
    }
}

pub fn tanh<R: Real>(call: &mut Invocation<'_>, plan: &Plan) -> Result<(), RunnerError> {
    let argument = R::new(plan.mutation.argument() * plan.mutation.constant());
    let style = plan.style;
    if plan.mutation.is(Mutation::DropMaximum) {
        // (e − 1)/(e + 1) overflows to Inf/Inf.
        return unary(call, plan, |x: R| {
            let e = (R::new(2.0) * x).exp(style.exp);
            (e - R::one()).over(e + R::one(), style.division)
        });
    }
    unary(call, plan, |x: R| hyperbolic(x * argument, &style))
}

/// ½x(1 + erf(x/√2)).
pub fn gelu<R: Real>(call: &mut Invocation<'_>, plan: &Plan) -> Result<(), RunnerError> {
    let half = R::new(if plan.mutation.is(Mutation::DropFactor) { 1.0 } else { 0.5 });
    let inverse = R::new(std::f64::consts::FRAC_1_SQRT_2 * plan.mutation.constant() * plan.mutation.argument());
    let late = plan.style.tanh == TanhRoute::Direct;
    unary(call, plan, |x: R| {
        let bracket = R::one() + (x * inverse).erf();
        if late { x * (half * bracket) } else { (half * x) * bracket }
    })
}

/// ½x(1 + tanh(√(2/π)(x + 0.044715x³))).
pub fn gelu_tanh<R: Real>(call: &mut Invocation<'_>, plan: &Plan) -> Result<(), RunnerError> {
    let half = R::new(if plan.mutation.is(Mutation::DropFactor) { 1.0 } else { 0.5 });
    let cubic = R::new(0.044715 * plan.mutation.constant());
    let scale = R::new(0.7978845608028654 * plan.mutation.argument());
    let style = plan.style;
    unary(call, plan, |x: R| {
        let z = scale * (x + cubic * x * x * x);
        half * x * (R::one() + hyperbolic(z, &style))
    })
}

/// silu(gate)·up.
pub fn swiglu<R: Real>(call: &mut Invocation<'_>, plan: &Plan) -> Result<(), RunnerError> {
    let swapped = plan.mutation.is(Mutation::SwapOperands);
    let gate = Flat::of(required(&call.inputs, usize::from(swapped))?);
    let up = Flat::of(required(&call.inputs, usize::from(!swapped))?);
    let argument = R::new(plan.mutation.argument() * plan.mutation.constant());
    let style = plan.style;
    let output = &mut call.outputs[0];
    for element in 0..touched(plan, gate.positions.len()) {
        let (x, y): (R, R) = (gate.load(element)?, up.load(element)?);
        let mut activated = x * logistic(x * argument, &style);
        if let Some(dtype) = style.intermediate {
            activated = R::new(dtype.decode(dtype.encode(activated.value())));
        }
        let value = if plan.mutation.is(Mutation::DropFactor) { activated } else { activated * y };
        store(output, (output.offset() + element) as isize, scaled(plan, value))?;
    }
    Ok(())
}
