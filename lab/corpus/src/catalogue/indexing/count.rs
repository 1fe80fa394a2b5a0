//! histogram, bincount and one_hot.

use gpuemu_engine::runner::{Invocation, RunnerError};
use gpuemu_tensor::DType;

use super::{handled, indices, next, store_all};
use crate::implementations::{Family, ROUTES};
use crate::kernel;
use crate::kernels::{Plan, input, size, write};
use crate::mutation::{Mutated, Mutation};
use crate::real::Real;
use crate::style::Division;

const END_DROPPED: &str = "elements equal to max dropped";
const OUTSIDE_COUNTED: &str = "elements outside put into the end bins";
const TO_NEAREST: &str = "rounded to the nearest bin";
const LAST_DROPPED: &str = "the last bin dropped";

pub(super) fn families() -> Vec<Family> {
    use Mutation::{DropTail, Named, NarrowAccumulator, OffByOne, Overwrite, ScaleOutput, SkipElement};
    let binned = [
        Named(END_DROPPED),
        Named(OUTSIDE_COUNTED),
        Named(TO_NEAREST),
        DropTail(32),
        SkipElement,
        NarrowAccumulator(DType::BF16),
        ScaleOutput(1.01),
    ];
    let counted = [OffByOne, Overwrite, DropTail(32), SkipElement, Named(LAST_DROPPED)];
    let spread = [OffByOne, Named(LAST_DROPPED), DropTail(32), ScaleOutput(2.0)];
    vec![
        Family::new(kernel!("histogram", histogram), &ROUTES, &binned),
        Family::new(kernel!("bincount", bincount), &ROUTES, &counted),
        Family::new(kernel!("one_hot", one_hot), &ROUTES, &spread),
    ]
}

/// Whether an element is counted.
fn counts(plan: &Plan, place: usize, count: usize) -> bool {
    let skipped = plan.mutation.is(Mutation::SkipElement) && count > 1 && place == count / 2;
    !skipped && place < handled(plan, count)
}

fn histogram<R: Real>(call: &mut Invocation<'_>, plan: &Plan) -> Result<(), RunnerError> {
    let (values, bins) = (input::<R>(call, "input")?, size(call, "bins"));
    let [min, max] = ["min", "max"].map(|name| R::new(call.parameters.float(name).unwrap_or(0.0)));
    let count = R::new(bins as f64);
    // Computed once by the host, or element by element.
    let scale = count.over(max - min, plan.style.division);
    let mut counters = vec![R::zero(); bins];
    for (_, x) in values.iter().enumerate().filter(|(place, _)| counts(plan, *place, values.len())) {
        let outside = *x < min || *x > max || plan.mutation.named(END_DROPPED) && *x == max;
        if x.is_nan() || outside && !plan.mutation.named(OUTSIDE_COUNTED) {
            continue;
        }
        let bin = match plan.style.division {
            Division::Approximate => (*x - min) * scale,
            division => ((*x - min) * count).over(max - min, division),
        };
        let bin = if plan.mutation.named(TO_NEAREST) { bin.value().round() } else { bin.value().floor() };
        let bin = (bin.max(0.0) as usize).min(bins - 1);
        let counted = counters[bin] + R::one();
        counters[bin] = match plan.mutation {
            Some(Mutation::NarrowAccumulator(dtype)) => R::new(dtype.decode(dtype.encode(counted.value()))),
            _ => counted,
        };
    }
    write(plan, &mut call.outputs[0], &counters)
}

/// Counters of each block, added to those of all.
fn bincount<R: Real>(call: &mut Invocation<'_>, plan: &Plan) -> Result<(), RunnerError> {
    let (numbers, bins) = (indices(call, "input")?, size(call, "minlength"));
    let mut totals = vec![0usize; bins];
    for (block, part) in numbers.chunks(plan.style.block.max(1)).enumerate() {
        let mut counters = vec![0usize; bins];
        for (lane, number) in part.iter().enumerate() {
            let place = block * plan.style.block + lane;
            if !counts(plan, place, numbers.len()) {
                continue;
            }
            let bin = if plan.mutation.is(Mutation::OffByOne) { next(*number, bins) } else { *number };
            counters[bin] = if plan.mutation.is(Mutation::Overwrite) { 1 } else { counters[bin] + 1 };
        }
        totals.iter_mut().zip(counters).for_each(|(total, counter)| *total += counter);
    }
    if let (true, Some(last)) = (plan.mutation.named(LAST_DROPPED), totals.last_mut()) {
        *last = 0;
    }
    let totals: Vec<R> = totals.into_iter().map(|total| R::new(total as f64)).collect();
    write(plan, &mut call.outputs[0], &totals)
}

fn one_hot<R: Real>(call: &mut Invocation<'_>, plan: &Plan) -> Result<(), RunnerError> {
    let (classes, width) = (indices(call, "input")?, size(call, "num_classes").max(1));
    let class = |row: usize| {
        let class = classes[row];
        if plan.mutation.is(Mutation::OffByOne) { next(class, width) } else { class }
    };
    store_all(plan, &mut call.outputs[0], |place| {
        let last = plan.mutation.named(LAST_DROPPED) && place % width + 1 == width;
        if class(place / width) == place % width && !last { R::one() } else { R::zero() }
    })
}
