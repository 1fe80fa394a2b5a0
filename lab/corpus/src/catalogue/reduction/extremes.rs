//! min, argmax and argmin along the last dim.

use gpuemu_engine::runner::{Invocation, RunnerError};
use gpuemu_engine::schema::SummationOrder;

use crate::implementations::{Family, ORDERS};
use crate::kernel;
use crate::kernels::Plan;
use crate::kernels::reduction::reduce;
use crate::mutation::{Mutated, Mutation};
use crate::real::Real;

const LAST_WINS: &str = "the last of several wins";
const NAN_LOSES: &str = "NaN never wins";
const IN_TILE: &str = "index inside its tile of 128";

pub(super) fn families() -> Vec<Family> {
    let least = [
        Mutation::Overwrite,
        Mutation::PadZero(128),
        Mutation::DropTail(32),
        Mutation::SkipElement,
        Mutation::DropMask,
        Mutation::ScaleOutput(1.01),
    ];
    let index = [
        Mutation::Named(LAST_WINS),
        Mutation::Named(NAN_LOSES),
        Mutation::Named(IN_TILE),
        Mutation::Overwrite,
        Mutation::PadZero(128),
        Mutation::DropTail(32),
        Mutation::OffByOne,
    ];
    vec![
        Family::new(kernel!("min", min), &ORDERS, &least),
        Family::new(kernel!("argmax", argmax), &ORDERS, &index),
        Family::new(kernel!("argmin", argmin), &ORDERS, &index),
    ]
}

fn min<R: Real>(call: &mut Invocation<'_>, plan: &Plan) -> Result<(), RunnerError> {
    let propagate = call.parameters.flag("propagate_nan");
    let start = if plan.mutation.is(Mutation::Overwrite) { R::zero() } else { -R::lowest() };
    reduce(call, plan, -R::lowest(), |lanes: &[R], width| {
        // The largest of −x: a NaN loses against a number.
        let largest = lanes.iter().fold(-start, |most, x| most.larger(-*x));
        let nans = lanes.iter().filter(|x| x.is_nan()).count();
        if propagate && nans > 0 || nans >= width { R::new(f64::NAN) } else { -largest }
    })
}

fn argmax<R: Real>(call: &mut Invocation<'_>, plan: &Plan) -> Result<(), RunnerError> {
    extreme_index(call, plan, R::one())
}

fn argmin<R: Real>(call: &mut Invocation<'_>, plan: &Plan) -> Result<(), RunnerError> {
    extreme_index(call, plan, -R::one())
}

/// The index of the largest of sign·x: pairs of value and index, combined tile by tile or lane by lane.
fn extreme_index<R: Real>(call: &mut Invocation<'_>, plan: &Plan, sign: R) -> Result<(), RunnerError> {
    reduce(call, plan, sign * R::lowest(), |lanes: &[R], _| {
        let mut pairs: Vec<(R, usize)> = lanes.iter().enumerate().map(|(index, x)| (sign * *x, index)).collect();
        if plan.mutation.is(Mutation::Overwrite) {
            pairs.insert(0, (R::zero(), 0));
        }
        let better = |left: (R, usize), right: (R, usize)| combine(plan, left, right);
        let fold = |pairs: &[(R, usize)]| pairs.iter().copied().reduce(better);
        let winner = match plan.style.order {
            SummationOrder::Tile(size) | SummationOrder::TileTree(size) => {
                pairs.chunks(size.max(1)).filter_map(fold).reduce(better)
            }
            SummationOrder::Split(parts) => {
                pairs.chunks(pairs.len().div_ceil(parts.max(1)).max(1)).filter_map(fold).reduce(better)
            }
            SummationOrder::Lanes32 => {
                let lane = |first: usize| pairs.iter().copied().skip(first).step_by(32).reduce(better);
                (0..32).filter_map(lane).reduce(better)
            }
            _ => fold(&pairs),
        };
        let index = winner.map_or(0, |(_, index)| index);
        let index = if plan.mutation.named(IN_TILE) { index % 128 } else { index };
        R::new((index + usize::from(plan.mutation.is(Mutation::OffByOne))) as f64)
    })
}

/// The better of two: NaN before numbers, the larger, the lower index.
fn combine<R: Real>(plan: &Plan, left: (R, usize), right: (R, usize)) -> (R, usize) {
    if left.0.is_nan() || right.0.is_nan() {
        let numbers_win = plan.mutation.named(NAN_LOSES);
        return match (left.0.is_nan(), right.0.is_nan()) {
            (true, true) => {
                if left.1 < right.1 {
                    left
                } else {
                    right
                }
            }
            (true, false) => {
                if numbers_win {
                    right
                } else {
                    left
                }
            }
            _ => {
                if numbers_win {
                    left
                } else {
                    right
                }
            }
        };
    }
    let tie = left.0 == right.0;
    let left_first = (left.1 <= right.1) != plan.mutation.named(LAST_WINS);
    if left.0 > right.0 || tie && left_first { left } else { right }
}
