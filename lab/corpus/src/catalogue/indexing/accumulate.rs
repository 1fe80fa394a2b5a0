//! scatter_add, index_add and the gradient of an embedding.

use gpuemu_engine::runner::{Invocation, RunnerError};
use gpuemu_tensor::DType;

use super::{handled, indices};
use crate::implementations::{Family, ORDERS};
use crate::kernel;
use crate::kernels::{Plan, add_up, input, read, size, write};
use crate::mutation::{Mutated, Mutation};
use crate::real::Real;

const START_LOST: &str = "the input is not added";
const ALPHA_TWICE: &str = "alpha on the input as well";
const PADDING_KEPT: &str = "gradient of the padding index kept";

pub(super) fn families() -> Vec<Family> {
    use Mutation::{DropFactor, DropTail, Named, NarrowAccumulator, Overwrite, ScaleOutput, SkipElement};
    let usual =
        [Overwrite, SkipElement, DropTail(32), NarrowAccumulator(DType::BF16), ScaleOutput(1.01), ScaleOutput(1.001)];
    let with = |own: &[Mutation]| [&usual[..], own].concat();
    let added = with(&[Named(START_LOST), DropFactor, Named(ALPHA_TWICE)]);
    vec![
        Family::new(kernel!("scatter_add", scatter_add), &ORDERS, &with(&[Named(START_LOST)])),
        Family::new(kernel!("index_add", index_add), &ORDERS, &added),
        Family::new(kernel!("index_add_", index_add_in_place), &ORDERS, &added),
        Family::new(
            kernel!("embedding_backward", embedding_backward),
            &ORDERS,
            &with(&[Named(PADDING_KEPT), DropFactor]),
        ),
    ]
}

/// What arrives at one place, as atomics or a sorted segment bring it.
struct Arrivals<R> {
    at: Vec<Vec<R>>,
}

impl<R: Real> Arrivals<R> {
    /// What is there before.
    fn starting(start: Vec<Option<R>>) -> Self {
        Self { at: start.into_iter().map(|value| value.into_iter().collect()).collect() }
    }

    fn add(&mut self, place: usize, value: R) {
        self.at[place].push(value);
    }

    fn totals(&self, plan: &Plan, started: bool) -> Vec<R> {
        let total = |arrived: &Vec<R>| match (arrived.as_slice(), plan.mutation.is(Mutation::Overwrite)) {
            // A load and a store in place of an atomic: the last one wins.
            ([start, .., last], true) if started => *start + *last,
            ([.., last], true) => *last,
            (arrived, _) => add_up(plan, arrived),
        };
        self.at.iter().map(total).collect()
    }
}

/// Whether an entry takes part.
fn counted(plan: &Plan, entry: usize, count: usize) -> bool {
    let skipped = plan.mutation.is(Mutation::SkipElement) && count > 1 && entry == count / 2;
    !skipped && entry < handled(plan, count)
}

/// What the input contributes.
fn start<R: Real>(plan: &Plan, values: Vec<R>, factor: R) -> Vec<Option<R>> {
    let lost = plan.mutation.named(START_LOST);
    values.into_iter().map(|value| Some(if lost { R::zero() } else { value * factor })).collect()
}

fn scatter_add<R: Real>(call: &mut Invocation<'_>, plan: &Plan) -> Result<(), RunnerError> {
    let (columns, source) = (indices(call, "index")?, input::<R>(call, "src")?);
    let (width, taken) = (size(call, "N"), size(call, "K"));
    let mut arrivals = Arrivals::starting(start(plan, input::<R>(call, "input")?, R::one()));
    for (place, (column, value)) in columns.iter().zip(source).enumerate() {
        if counted(plan, place % taken, taken) {
            arrivals.add(place / taken * width + column, value);
        }
    }
    write(plan, &mut call.outputs[0], &arrivals.totals(plan, true))
}

fn index_add<R: Real>(call: &mut Invocation<'_>, plan: &Plan) -> Result<(), RunnerError> {
    let values = input::<R>(call, "input")?;
    add_rows(call, plan, values)
}

fn index_add_in_place<R: Real>(call: &mut Invocation<'_>, plan: &Plan) -> Result<(), RunnerError> {
    let values = read::<R>(&call.outputs[0])?;
    add_rows(call, plan, values)
}

fn add_rows<R: Real>(call: &mut Invocation<'_>, plan: &Plan, values: Vec<R>) -> Result<(), RunnerError> {
    let (rows, source) = (indices(call, "index")?, input::<R>(call, "source")?);
    let width = size(call, "N");
    let alpha = R::new(call.parameters.float("alpha").unwrap_or(1.0));
    let factor = if plan.mutation.is(Mutation::DropFactor) { R::one() } else { alpha };
    let before = if plan.mutation.named(ALPHA_TWICE) { alpha } else { R::one() };
    let mut arrivals = Arrivals::starting(start(plan, values, before));
    for (entry, row) in rows.iter().enumerate().filter(|(entry, _)| counted(plan, *entry, rows.len())) {
        for column in 0..width {
            arrivals.add(row * width + column, factor * source[entry * width + column]);
        }
    }
    write(plan, &mut call.outputs[0], &arrivals.totals(plan, true))
}

fn embedding_backward<R: Real>(call: &mut Invocation<'_>, plan: &Plan) -> Result<(), RunnerError> {
    let (rows, gradient) = (indices(call, "indices")?, input::<R>(call, "grad_output")?);
    let (height, width) = (size(call, "num_weights"), size(call, "D"));
    let padding = call.parameters.int("padding_idx").filter(|_| !plan.mutation.named(PADDING_KEPT));
    let scaled = call.parameters.flag("scale_grad_by_freq") && !plan.mutation.is(Mutation::DropFactor);
    let mut frequency = vec![0usize; height];
    rows.iter().for_each(|row| frequency[*row] += 1);
    // Some kernels scale what arrives, others the sum.
    let before = plan.style.block < 1024;
    let share = |row: usize, value: R| {
        if scaled { value.over(R::new(frequency[row].max(1) as f64), plan.style.division) } else { value }
    };
    let mut arrivals = Arrivals::starting(vec![None; height * width]);
    for (entry, row) in rows.iter().enumerate().filter(|(entry, _)| counted(plan, *entry, rows.len())) {
        for column in 0..width {
            let value = gradient[entry * width + column];
            let value = if before { share(*row, value) } else { value };
            if padding != Some(*row as i64) {
                arrivals.add(row * width + column, value);
            }
        }
    }
    let mut totals = arrivals.totals(plan, false);
    if !before {
        totals.iter_mut().enumerate().for_each(|(place, total)| *total = share(place / width, *total));
    }
    write(plan, &mut call.outputs[0], &totals)
}
