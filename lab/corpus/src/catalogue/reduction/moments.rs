//! logsumexp and var along the last dim, and sums along the first.

use gpuemu_engine::runner::{Invocation, RunnerError};
use gpuemu_engine::schema::{SummationOrder, VarianceForm};
use gpuemu_tensor::DType;

use crate::implementations::{Family, ORDERS};
use crate::kernel;
use crate::kernels::reduction::reduce;
use crate::kernels::{Plan, add_up, input, size, write};
use crate::mutation::{Mutated, Mutation};
use crate::real::Real;
use crate::style::Style;

const NOT_DIVIDED: &str = "squared deviations not divided";
const TILE_OVERWRITES: &str = "tiles of 64 rows overwrite one another";

const SEQUENTIAL: Style = Style::TRITON.ordered(SummationOrder::Sequential);
const TREE: Style = Style::TRITON.ordered(SummationOrder::TileTree(128));

const VARIANCES: [Style; 5] = [
    TREE,
    Style::NUMPY,
    SEQUENTIAL,
    Style { variance: VarianceForm::Welford, ..SEQUENTIAL },
    Style { variance: VarianceForm::OnePass, ..TREE },
];

pub(super) fn families() -> Vec<Family> {
    let row = [
        Mutation::PadZero(128),
        Mutation::DropTail(32),
        Mutation::SkipElement,
        Mutation::NarrowAccumulator(DType::BF16),
        Mutation::ScaleOutput(1.001),
    ];
    let mut exponentials = row.to_vec();
    exponentials.extend([Mutation::DropMaximum, Mutation::DropFactor, Mutation::ScaleArgument(1.01)]);
    let mut variance = row.to_vec();
    variance.extend([Mutation::Unbiased, Mutation::Named(NOT_DIVIDED), Mutation::DropFactor]);
    let columns = [
        Mutation::DropTail(32),
        Mutation::SkipElement,
        Mutation::Named(TILE_OVERWRITES),
        Mutation::SwapOperands,
        Mutation::OffByOne,
        Mutation::NarrowAccumulator(DType::BF16),
        Mutation::ScaleOutput(1.001),
    ];
    let mut orders = ORDERS.to_vec();
    orders.push(Style { folded: true, ..TREE });
    vec![
        Family::new(kernel!("logsumexp", logsumexp), &orders, &exponentials),
        Family::new(kernel!("var", var), &VARIANCES, &variance),
        Family::new(kernel!("sum_columns", sum_columns), &ORDERS, &columns),
    ]
}

fn logsumexp<R: Real>(call: &mut Invocation<'_>, plan: &Plan) -> Result<(), RunnerError> {
    let (style, argument) = (plan.style, R::new(plan.mutation.argument()));
    let log2e = R::new(std::f64::consts::LOG2_E);
    reduce(call, plan, R::lowest(), |lanes: &[R], _| {
        let mut maximum = lanes.iter().fold(R::lowest(), |most, x| most.larger(*x));
        let infinite = maximum == R::lowest() || maximum == -R::lowest();
        // ±Inf − ±Inf would be NaN.
        if infinite || plan.mutation.is(Mutation::DropMaximum) {
            maximum = R::zero();
        }
        let terms: Vec<R> = lanes
            .iter()
            .map(|x| {
                if style.folded {
                    (*x * log2e - maximum * log2e).exp2(style.exp)
                } else {
                    ((*x - maximum) * argument).exp(style.exp)
                }
            })
            .collect();
        let log = add_up(plan, &terms).ln();
        if plan.mutation.is(Mutation::DropFactor) { log } else { maximum + log }
    })
}

fn var<R: Real>(call: &mut Invocation<'_>, plan: &Plan) -> Result<(), RunnerError> {
    let declared = call.parameters.int("correction").unwrap_or(1) as f64;
    // n in place of n − 1, and the other way round.
    let correction = if plan.mutation.is(Mutation::Unbiased) { 1.0 - declared } else { declared };
    let divide = |total: R, by: R| total.over(by, plan.style.division);
    let form = plan.style.variance;
    reduce(call, plan, R::zero(), |lanes: &[R], width| {
        let count = R::new(width as f64);
        let divisor = R::new((width as f64 - correction).max(0.0));
        if form == VarianceForm::Welford {
            let (mut mean, mut squares) = (R::zero(), R::zero());
            for (index, x) in lanes.iter().enumerate() {
                let before = *x - mean;
                mean = mean + divide(before, R::new(index as f64 + 1.0));
                squares = squares + before * (*x - mean);
            }
            return squares / divisor;
        }
        let mean = if plan.mutation.is(Mutation::DropFactor) { R::zero() } else { divide(add_up(plan, lanes), count) };
        let squares: Vec<R> = match form {
            VarianceForm::OnePass => lanes.iter().map(|x| *x * *x).collect(),
            _ => lanes.iter().map(|x| (*x - mean) * (*x - mean)).collect(),
        };
        let total = add_up(plan, &squares);
        if form != VarianceForm::OnePass {
            return if plan.mutation.named(NOT_DIVIDED) { total } else { total / divisor };
        }
        let biased = divide(total, count) - mean * mean;
        // Rounding may make it negative; NaN stays NaN.
        let biased = if biased < R::zero() { R::zero() } else { biased };
        biased * count / divisor
    })
}

fn sum_columns<R: Real>(call: &mut Invocation<'_>, plan: &Plan) -> Result<(), RunnerError> {
    let matrix: Vec<R> = input(call, "input")?;
    let (rows, columns) = (size(call, "M"), size(call, "N"));
    let mut sums = Vec::with_capacity(columns);
    for column in 0..columns {
        let read = match plan.mutation {
            Some(Mutation::OffByOne) => (column + 1) % columns,
            _ => column,
        };
        let swapped = plan.mutation.is(Mutation::SwapOperands);
        let at = |row: usize| matrix[if swapped { read * rows + row } else { row * columns + read }];
        let mut terms: Vec<R> = (0..rows).map(at).collect();
        match plan.mutation {
            Some(Mutation::DropTail(tile)) if rows >= tile => terms.truncate(rows / tile * tile),
            Some(Mutation::SkipElement) if rows > 1 => terms[rows / 2] = R::zero(),
            Some(Mutation::Named(TILE_OVERWRITES)) => terms = terms.split_off((rows.max(1) - 1) / 64 * 64),
            _ => {}
        }
        sums.push(add_up(plan, &terms));
    }
    write(plan, &mut call.outputs[0], &sums)
}
