//! linear, alone and with relu, gelu or silu.

use gpuemu_engine::runner::{Invocation, RunnerError};

use super::{ORDERS, mutants, steps};
use crate::implementations::Family;
use crate::kernel;
use crate::kernels::{Plan, add_up, elements, input, size, write};
use crate::mutation::{Mutated, Mutation};
use crate::real::Real;
use crate::style::{Division, Style};

/// The ops and their kernels.
pub(super) fn families() -> Vec<Family> {
    let own = [Mutation::Named("bias of the row"), Mutation::Named("weight not transposed"), Mutation::FlipSign];
    let with = |extra: &[Mutation]| mutants(&[&own[..], extra].concat());
    let before = Mutation::Named("activation before the bias");
    vec![
        Family::new(kernel!("linear", linear), &ORDERS, &with(&[])),
        Family::new(kernel!("linear_relu", linear_relu), &ORDERS, &with(&[before, Mutation::Constant(1.01)])),
        Family::new(
            kernel!("linear_gelu", linear_gelu),
            &ORDERS,
            &with(&[before, Mutation::ScaleArgument(1.01), Mutation::Named("forms mixed up")]),
        ),
        Family::new(
            kernel!("linear_silu", linear_silu),
            &ORDERS,
            &with(&[before, Mutation::ScaleArgument(1.01), Mutation::DropFactor]),
        ),
    ]
}

/// input·weightᵀ + bias, then an activation.
fn layer<R: Real>(call: &mut Invocation<'_>, plan: &Plan, activation: impl Fn(R) -> R) -> Result<(), RunnerError> {
    let (x, weight): (Vec<R>, Vec<R>) = (input(call, "input")?, input(call, "weight")?);
    let bias: Option<Vec<R>> = elements(call, "bias")?;
    let (inner, columns) = (size(call, "K"), size(call, "N"));
    let rows = call.sizes.batch_count();
    let early = plan.mutation.named("activation before the bias");
    let mut values = Vec::with_capacity(rows * columns);
    for row in 0..rows {
        for column in 0..columns {
            let place = if plan.mutation.named("bias of the row") { row % columns } else { column };
            let addend = bias.as_ref().map(|bias| bias[place]);
            let addend = if plan.mutation.is(Mutation::FlipSign) { addend.map(|bias| -bias) } else { addend };
            let term = |k: usize| {
                let turned = plan.mutation.named("weight not transposed") && inner == columns;
                let y = if turned { weight[k * inner + column] } else { weight[column * inner + k] };
                x[row * inner + k] * y
            };
            // An accumulator may start with the bias.
            let first = addend.filter(|_| plan.style.division == Division::Approximate && !early);
            let mut terms: Vec<R> = first.into_iter().collect();
            terms.extend(steps(plan, inner).into_iter().map(term));
            let mut sum = add_up(plan, &terms);
            if early {
                sum = activation(sum);
            }
            if let (Some(bias), None) = (addend, first) {
                sum = sum + bias;
            }
            values.push(if early { sum } else { activation(sum) });
        }
    }
    write(plan, &mut call.outputs[0], &values)
}

fn linear<R: Real>(call: &mut Invocation<'_>, plan: &Plan) -> Result<(), RunnerError> {
    layer(call, plan, |z: R| z)
}

fn linear_relu<R: Real>(call: &mut Invocation<'_>, plan: &Plan) -> Result<(), RunnerError> {
    let threshold = R::new(plan.mutation.constant() - 1.0);
    layer(call, plan, |z: R| if z.is_nan() || z > threshold { z } else { R::zero() })
}

fn logistic<R: Real>(z: R, style: &Style) -> R {
    R::one().over(R::one() + (-z).exp(style.exp), style.division)
}

fn linear_silu<R: Real>(call: &mut Invocation<'_>, plan: &Plan) -> Result<(), RunnerError> {
    let argument = R::new(plan.mutation.argument());
    let bare = plan.mutation.is(Mutation::DropFactor);
    let style = plan.style;
    layer(call, plan, |z: R| {
        let gate = logistic(z * argument, &style);
        if bare { gate } else { z * gate }
    })
}

fn linear_gelu<R: Real>(call: &mut Invocation<'_>, plan: &Plan) -> Result<(), RunnerError> {
    let approximate = call.parameters.flag("approximate_tanh") != plan.mutation.named("forms mixed up");
    let argument = R::new(plan.mutation.argument());
    let (half, style) = (R::new(0.5), plan.style);
    let inverse = R::new(std::f64::consts::FRAC_1_SQRT_2);
    let (scale, cubic) = (R::new(0.797_884_560_802_865_4), R::new(0.044_715));
    layer(call, plan, |z: R| {
        if !approximate {
            return half * z * (R::one() + (z * argument * inverse).erf());
        }
        let inner = scale * (z + cubic * z * z * z) * argument;
        // x·σ(2u) is ½x(1 + tanh u).
        if style.division == Division::Exact {
            half * z * (R::one() + inner.tanh())
        } else {
            z * logistic(R::new(2.0) * inner, &style)
        }
    })
}
