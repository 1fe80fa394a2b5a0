//! Gradients.

mod activation;

use gpuemu_engine::runner::{Invocation, RunnerError};
use gpuemu_engine::schema::{SummationOrder, VarianceForm};
use gpuemu_tensor::DType;

use crate::catalogue::normalisation::reduced;
use crate::implementations::{FOLDED, Family, ORDERS};
use crate::kernel;
use crate::kernels::normalisation::{inverse_root, moments};
use crate::kernels::softmax::exponentials;
use crate::kernels::{Plan, add_up, elements, input, size, write};
use crate::mutation::{Mutated, Mutation};
use crate::real::Real;
use crate::style::{Division, Style};

const NO_EXPONENTIAL: &str = "exponential forgotten";
const PLAIN_SUM: &str = "sum of the gradients alone";
const NO_MEAN: &str = "mean of h missing";
const NO_PRODUCT: &str = "mean of h*xhat missing";
const NO_WEIGHT: &str = "weight forgotten";
const LAST_ROW: &str = "last row missing in the weight gradient";
const ONE_ROOT: &str = "one factor of r missing";
const GRADIENT_ONE: &str = "upstream gradient taken for 1";
const NOT_IGNORED: &str = "ignored rows get a gradient";
const FEWER: &str = "smoothing divided by V - 1";

const SUMS: [Mutation; 5] = [
    Mutation::DropFactor,
    Mutation::DropTail(32),
    Mutation::SkipElement,
    Mutation::NarrowAccumulator(DType::BF16),
    Mutation::ScaleOutput(1.01),
];

/// Forms of a variance.
const FORMS: [Style; 6] = [
    Style::NUMPY,
    Style::TRITON.ordered(SummationOrder::Sequential),
    Style { variance: VarianceForm::Welford, ..Style::TRITON.ordered(SummationOrder::Sequential) },
    Style { variance: VarianceForm::OnePass, ..Style::TRITON.ordered(SummationOrder::TileTree(128)) },
    Style::TRITON.ordered(SummationOrder::Lanes32),
    Style { folded: true, ..Style::TRITON.ordered(SummationOrder::Sequential) },
];

/// The ops of this group and their kernels.
pub fn families() -> Vec<Family> {
    let with = |own: &[Mutation]| [own, &SUMS[..]].concat();
    let norms = [
        Mutation::Named(NO_PRODUCT),
        Mutation::Named(NO_WEIGHT),
        Mutation::Named(LAST_ROW),
        Mutation::EpsOutside,
        Mutation::Constant(10.0),
        Mutation::DropRoot,
        Mutation::DropTail(32),
        Mutation::NarrowAccumulator(DType::BF16),
        Mutation::ScaleOutput(1.01),
    ];
    let folding = [ORDERS[0], ORDERS[1], ORDERS[2], ORDERS[3], ORDERS[4], FOLDED];
    let mut families = vec![
        Family::new(
            kernel!("softmax_backward", softmax_backward),
            &ORDERS,
            &with(&[Mutation::Named(PLAIN_SUM), Mutation::FlipSign]),
        ),
        Family::new(
            kernel!("log_softmax_backward", log_softmax_backward),
            &ORDERS,
            &with(&[Mutation::Named(NO_EXPONENTIAL), Mutation::FlipSign, Mutation::ScaleArgument(1.01)]),
        ),
        Family::new(
            kernel!("layernorm_backward", layernorm_backward),
            &FORMS,
            &[&[Mutation::Named(NO_MEAN), Mutation::Unbiased, Mutation::PadZero(128)], &norms[..]].concat(),
        ),
        Family::new(
            kernel!("rmsnorm_backward", rmsnorm_backward),
            &ORDERS,
            &[&[Mutation::Named(ONE_ROOT)], &norms[..]].concat(),
        ),
        Family::new(
            kernel!("cross_entropy_backward", cross_entropy_backward),
            &folding,
            &[
                Mutation::OffByOne,
                Mutation::Named(GRADIENT_ONE),
                Mutation::Named(NOT_IGNORED),
                Mutation::Named(FEWER),
                Mutation::DropMaximum,
                Mutation::PadZero(128),
                Mutation::DropTail(32),
                Mutation::SkipElement,
                Mutation::NarrowAccumulator(DType::BF16),
                Mutation::ScaleOutput(1.01),
            ],
        ),
    ];
    families.extend(activation::families());
    families
}

fn softmax_backward<R: Real>(call: &mut Invocation<'_>, plan: &Plan) -> Result<(), RunnerError> {
    let (gradient, output): (Vec<R>, Vec<R>) = (input(call, "grad_output")?, input(call, "output")?);
    let width = size(call, "H").max(1);
    let mut out = Vec::with_capacity(output.len());
    for (gradient, output) in gradient.chunks(width).zip(output.chunks(width)) {
        let products: Vec<R> = gradient.iter().zip(output).map(|(dy, y)| *dy * *y).collect();
        let terms = if plan.mutation.named(PLAIN_SUM) { gradient } else { &products };
        let mut sum = add_up(plan, &reduced(plan, terms, R::zero()));
        if plan.mutation.is(Mutation::DropFactor) {
            sum = R::zero();
        } else if plan.mutation.is(Mutation::FlipSign) {
            sum = -sum;
        }
        for ((dy, y), product) in gradient.iter().zip(output).zip(&products) {
            let late = plan.style.division == Division::Exact;
            out.push(if late { *y * (*dy - sum) } else { *product - *y * sum });
        }
    }
    write(plan, &mut call.outputs[0], &out)
}

fn log_softmax_backward<R: Real>(call: &mut Invocation<'_>, plan: &Plan) -> Result<(), RunnerError> {
    let (gradient, output): (Vec<R>, Vec<R>) = (input(call, "grad_output")?, input(call, "output")?);
    let width = size(call, "H").max(1);
    let argument = R::new(plan.mutation.argument());
    let mut out = Vec::with_capacity(output.len());
    for (gradient, output) in gradient.chunks(width).zip(output.chunks(width)) {
        let mut sum = add_up(plan, &reduced(plan, gradient, R::zero()));
        if plan.mutation.is(Mutation::DropFactor) {
            sum = R::zero();
        } else if plan.mutation.is(Mutation::FlipSign) {
            sum = -sum;
        }
        for (dy, y) in gradient.iter().zip(output) {
            let share = if plan.mutation.named(NO_EXPONENTIAL) { *y } else { (*y * argument).exp(plan.style.exp) };
            out.push(*dy - share * sum);
        }
    }
    write(plan, &mut call.outputs[0], &out)
}

fn epsilon<R: Real>(call: &Invocation<'_>, plan: &Plan) -> R {
    R::new(call.parameters.float("eps").unwrap_or(1e-5) * plan.mutation.constant())
}

/// Sums of columns over rows, in the kernel's order.
fn column_sums<R: Real>(plan: &Plan, products: &[R], width: usize) -> Vec<R> {
    let rows = products.len() / width.max(1);
    let kept = rows - usize::from(plan.mutation.named(LAST_ROW) && rows > 1);
    let column = |column: usize| -> Vec<R> { (0..kept).map(|row| products[row * width + column]).collect() };
    (0..width).map(|index| add_up(plan, &column(index))).collect()
}

fn upstream<R: Real>(plan: &Plan, gradient: &[R], weight: Option<&Vec<R>>, offset: R) -> Vec<R> {
    match weight.filter(|_| !plan.mutation.named(NO_WEIGHT)) {
        None => gradient.to_vec(),
        Some(weight) => gradient.iter().zip(weight).map(|(dy, w)| *dy * (offset + *w)).collect(),
    }
}

fn layernorm_backward<R: Real>(call: &mut Invocation<'_>, plan: &Plan) -> Result<(), RunnerError> {
    let (gradient, x): (Vec<R>, Vec<R>) = (input(call, "grad_output")?, input(call, "input")?);
    let (weight, eps) = (elements::<R>(call, "weight")?, epsilon::<R>(call, plan));
    let width = size(call, "H").max(1);
    let count = R::new(width as f64);
    let (mut grad_input, mut products) = (Vec::new(), Vec::new());
    for (dy, row) in gradient.chunks(width).zip(x.chunks(width)) {
        let (mean, variance) = moments(plan, &reduced(plan, row, R::zero()), width, count);
        let inverse = inverse_root(plan, variance, eps);
        let centred = |x: R| if plan.style.folded { x * inverse - mean * inverse } else { (x - mean) * inverse };
        let normalised: Vec<R> = row.iter().map(|x| centred(*x)).collect();
        let h = upstream(plan, dy, weight.as_ref(), R::zero());
        let pairs: Vec<R> = h.iter().zip(&normalised).map(|(h, x)| *h * *x).collect();
        let [mut sum, mut product] = [&h, &pairs].map(|terms| add_up(plan, &reduced(plan, terms, R::zero())));
        if plan.mutation.named(NO_MEAN) {
            sum = R::zero();
        }
        if plan.mutation.named(NO_PRODUCT) {
            product = R::zero();
        }
        if plan.style.folded {
            // a·h + b·x + c, with coefficients of the row.
            let plain: Vec<R> = h.iter().zip(row).map(|(h, x)| *h * *x).collect();
            let moved = (add_up(plan, &plain) - sum * mean) * inverse * inverse * inverse;
            let slope = -moved.over(count, plan.style.division);
            let shift = -(slope * mean) - (sum * inverse).over(count, plan.style.division);
            grad_input.extend(h.iter().zip(row).map(|(h, x)| inverse * *h + slope * *x + shift));
            products.extend(dy.iter().zip(&normalised).map(|(dy, x)| *dy * *x));
            continue;
        }
        for (h, x) in h.iter().zip(&normalised) {
            grad_input.push(if plan.style.division == Division::Exact {
                inverse * (*h - sum / count - *x * (product / count))
            } else {
                // One factor r/n at the end.
                inverse.over(count, plan.style.division) * (count * *h - sum - *x * product)
            });
        }
        products.extend(dy.iter().zip(&normalised).map(|(dy, x)| *dy * *x));
    }
    write(plan, &mut call.outputs[0], &grad_input)?;
    write(plan, &mut call.outputs[1], &column_sums(plan, &products, width))?;
    write(plan, &mut call.outputs[2], &column_sums(plan, &gradient, width))
}

fn rmsnorm_backward<R: Real>(call: &mut Invocation<'_>, plan: &Plan) -> Result<(), RunnerError> {
    let (gradient, x): (Vec<R>, Vec<R>) = (input(call, "grad_output")?, input(call, "input")?);
    let (weight, eps) = (elements::<R>(call, "weight")?, epsilon::<R>(call, plan));
    let offset = if call.parameters.flag("unit_offset") { R::one() } else { R::zero() };
    let width = size(call, "H").max(1);
    let (count, division) = (R::new(width as f64), plan.style.division);
    let (mut grad_input, mut products) = (Vec::new(), Vec::new());
    for (dy, row) in gradient.chunks(width).zip(x.chunks(width)) {
        let squares: Vec<R> = reduced(plan, row, R::zero()).iter().map(|x| *x * *x).collect();
        let inverse = inverse_root(plan, add_up(plan, &squares).over(count, division), eps);
        let h = upstream(plan, dy, weight.as_ref(), offset);
        let late = division == Division::Exact;
        let scale = if late { R::one() } else { inverse };
        let pairs: Vec<R> = h.iter().zip(row).map(|(h, x)| *h * (*x * scale)).collect();
        let mut mean = add_up(plan, &reduced(plan, &pairs, R::zero())).over(count, division);
        if plan.mutation.named(NO_PRODUCT) {
            mean = R::zero();
        }
        let missing = plan.mutation.named(ONE_ROOT);
        for (h, x) in h.iter().zip(row) {
            grad_input.push(if missing {
                inverse * *h - inverse * mean * *x
            } else if late {
                // r·h − r·(r²·mean)·x.
                inverse * *h - inverse * ((inverse * inverse * mean) * *x)
            } else {
                inverse * (*h - *x * inverse * mean)
            });
        }
        products.extend(dy.iter().zip(row).map(|(dy, x)| *dy * (*x * inverse)));
    }
    write(plan, &mut call.outputs[0], &grad_input)?;
    write(plan, &mut call.outputs[1], &column_sums(plan, &products, width))
}

fn cross_entropy_backward<R: Real>(call: &mut Invocation<'_>, plan: &Plan) -> Result<(), RunnerError> {
    let x: Vec<R> = input(call, "input")?;
    let (target, gradient): (Vec<f64>, Vec<R>) = (input(call, "target")?, input(call, "grad_output")?);
    let ignored = call.parameters.int("ignore_index").unwrap_or(-100) as f64;
    let smoothing = call.parameters.float("label_smoothing").unwrap_or(0.0);
    let width = size(call, "V").max(1);
    let classes = if plan.mutation.named(FEWER) { width.saturating_sub(1).max(1) } else { width };
    let spread = R::new(smoothing).over(R::new(classes as f64), plan.style.division);
    let confidence = R::one() - R::new(smoothing);
    let mut out = Vec::with_capacity(x.len());
    for ((row, target), g) in x.chunks(width).zip(&target).zip(&gradient) {
        if *target == ignored && !plan.mutation.named(NOT_IGNORED) {
            out.extend(row.iter().map(|_| R::zero()));
            continue;
        }
        let (terms, _) = exponentials(plan, &reduced(plan, row, R::lowest()));
        let total = add_up(plan, &terms);
        let g = if plan.mutation.named(GRADIENT_ONE) { R::one() } else { *g };
        let hit = (*target as usize + usize::from(plan.mutation.is(Mutation::OffByOne))) % width;
        for (class, term) in terms.iter().take(width).enumerate() {
            let mut wanted = spread;
            if class == hit {
                wanted = wanted + confidence;
            }
            let p = term.over(total, plan.style.division);
            out.push(if plan.style.division == Division::Exact { (p - wanted) * g } else { p * g - wanted * g });
        }
    }
    write(plan, &mut call.outputs[0], &out)
}
