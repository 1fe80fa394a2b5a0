//! sort, argsort and topk.

use gpuemu_engine::runner::{Invocation, RunnerError};

use super::next;
use crate::implementations::{Family, ROUTES};
use crate::kernel;
use crate::kernels::{Plan, input, size, write};
use crate::mutation::{Mutated, Mutation};
use crate::real::Real;
use crate::style::{Division, ExpRoute};

const NAN_LOW: &str = "NaN below everything";
const NAN_LOST: &str = "NaN loses every comparison";
const EQUAL_REVERSED: &str = "equal elements in reverse order";
const PADDED: &str = "zeros of the padding take part";
const NO_OFFSET: &str = "indices of a tile without its offset";
const OTHER_END: &str = "the other end first";

pub(super) fn families() -> Vec<Family> {
    use Mutation::{Named, OffByOne, ScaleOutput};
    let sorted = [
        Named(NAN_LOW),
        Named(EQUAL_REVERSED),
        Named(PADDED),
        Named(NO_OFFSET),
        Named(OTHER_END),
        OffByOne,
        ScaleOutput(1.01),
    ];
    let chosen = [
        Named(NAN_LOST),
        Named(EQUAL_REVERSED),
        Named(PADDED),
        Named(NO_OFFSET),
        Named(OTHER_END),
        OffByOne,
        ScaleOutput(1.01),
    ];
    vec![
        Family::new(kernel!("sort", sort), &ROUTES, &sorted),
        Family::new(kernel!("argsort", argsort), &ROUTES, &sorted),
        Family::new(kernel!("topk", topk), &ROUTES, &chosen),
    ]
}

const TILE: usize = 64;

/// How two elements of a row compare.
struct Comparison<'a> {
    plan: &'a Plan,
    descending: bool,
    /// Among equal elements the higher index first: nothing forbids it where the order need not be kept.
    reversed: bool,
    /// -0 below 0, as integers made of the bits have it.
    by_bits: bool,
}

impl<'a> Comparison<'a> {
    fn of(call: &Invocation<'_>, plan: &'a Plan, descending: &str) -> Self {
        let stable = call.parameters.flag("stable");
        let wrong = plan.mutation.named(EQUAL_REVERSED);
        Self {
            plan,
            descending: call.parameters.flag(descending) != plan.mutation.named(OTHER_END),
            reversed: wrong || !stable && plan.style.exp != ExpRoute::Direct,
            by_bits: plan.style.division == Division::Reciprocal,
        }
    }

    fn before<R: Real>(&self, left: (R, usize), right: (R, usize)) -> bool {
        let (a, b) = (left.0, right.0);
        if a.is_nan() != b.is_nan() {
            let high = !self.plan.mutation.named(NAN_LOW) && !self.plan.mutation.named(NAN_LOST);
            return a.is_nan() == (self.descending == high);
        }
        if a != b && !a.is_nan() {
            return (a > b) == self.descending;
        }
        let signs = (a.value().is_sign_negative(), b.value().is_sign_negative());
        if self.by_bits && !a.is_nan() && signs.0 != signs.1 {
            return signs.1 == self.descending;
        }
        (left.1 < right.1) != self.reversed
    }

    fn index(&self, index: usize, width: usize) -> f64 {
        let index = if self.plan.mutation.named(NO_OFFSET) { index % TILE } else { index };
        (if self.plan.mutation.is(Mutation::OffByOne) { next(index, width) } else { index }) as f64
    }
}

/// A bitonic network over a row that is padded to a power of two by what comes last.
fn network<R: Real>(comparison: &Comparison<'_>, row: &[R]) -> Vec<(R, usize)> {
    let mut lanes: Vec<Option<(R, usize)>> = row.iter().enumerate().map(|(index, x)| Some((*x, index))).collect();
    for index in lanes.len()..lanes.len().next_power_of_two() {
        lanes.push(comparison.plan.mutation.named(PADDED).then_some((R::zero(), index)));
    }
    let before = |left: Option<(R, usize)>, right: Option<(R, usize)>| match (left, right) {
        (Some(left), Some(right)) => comparison.before(left, right),
        (left, _) => left.is_some(),
    };
    let mut length = 2;
    while length <= lanes.len() {
        let mut distance = length / 2;
        while distance > 0 {
            for lane in 0..lanes.len() {
                let partner = lane ^ distance;
                let upwards = lane & length == 0;
                if partner > lane && before(lanes[partner], lanes[lane]) == upwards {
                    lanes.swap(lane, partner);
                }
            }
            distance /= 2;
        }
        length *= 2;
    }
    lanes.into_iter().flatten().take(row.len()).collect()
}

fn sorted<R: Real>(call: &Invocation<'_>, plan: &Plan) -> Result<(Vec<R>, Vec<R>), RunnerError> {
    let (values, width) = (input::<R>(call, "input")?, size(call, "H"));
    let comparison = Comparison::of(call, plan, "descending");
    let (mut sorted, mut indices) = (Vec::with_capacity(values.len()), Vec::with_capacity(values.len()));
    for row in values.chunks(width.max(1)) {
        for (value, index) in network(&comparison, row) {
            sorted.push(value);
            indices.push(R::new(comparison.index(index, width)));
        }
    }
    Ok((sorted, indices))
}

fn sort<R: Real>(call: &mut Invocation<'_>, plan: &Plan) -> Result<(), RunnerError> {
    let (values, indices) = sorted::<R>(call, plan)?;
    write(plan, &mut call.outputs[0], &values)?;
    write(plan, &mut call.outputs[1], &indices)
}

fn argsort<R: Real>(call: &mut Invocation<'_>, plan: &Plan) -> Result<(), RunnerError> {
    let (_, indices) = sorted::<R>(call, plan)?;
    write(plan, &mut call.outputs[0], &indices)
}

/// k rounds, in each of which tiles find their first and one of those wins.
fn topk<R: Real>(call: &mut Invocation<'_>, plan: &Plan) -> Result<(), RunnerError> {
    let (values, width, taken) = (input::<R>(call, "input")?, size(call, "H"), size(call, "k"));
    let comparison = Comparison::of(call, plan, "largest");
    let (mut chosen, mut indices) = (Vec::new(), Vec::new());
    for row in values.chunks(width.max(1)) {
        let mut left: Vec<Option<(R, usize)>> = row.iter().enumerate().map(|(index, x)| Some((*x, index))).collect();
        if plan.mutation.named(PADDED) {
            (width..width.next_multiple_of(TILE)).for_each(|index| left.push(Some((R::zero(), index))));
        }
        for _ in 0..taken {
            let first = |best: Option<(R, usize)>, lane: Option<(R, usize)>| match (best, lane) {
                (Some(best), Some(lane)) => Some(if comparison.before(lane, best) { lane } else { best }),
                (best, lane) => best.or(lane),
            };
            let of_tile = |tile: &[Option<(R, usize)>]| tile.iter().copied().fold(None, first);
            let winner = left.chunks(TILE).map(of_tile).fold(None, first);
            let Some((value, index)) = winner else { break };
            left[index] = None;
            chosen.push(value);
            indices.push(R::new(comparison.index(index, width)));
        }
    }
    write(plan, &mut call.outputs[0], &chosen)?;
    write(plan, &mut call.outputs[1], &indices)
}
