//! prod and cumprod along the last dim.

use gpuemu_engine::runner::{Invocation, RunnerError};
use gpuemu_engine::schema::SummationOrder;
use gpuemu_tensor::DType;

use crate::implementations::{Family, ORDERS};
use crate::kernel;
use crate::kernels::reduction::reduce;
use crate::kernels::{Plan, load_row, required, scaled};
use crate::memory::{Rows, store};
use crate::mutation::{Mutated, Mutation};
use crate::real::Real;
use crate::style::Style;

const SIGN_LOST: &str = "signs of the factors lost";

pub(super) fn families() -> Vec<Family> {
    let product = [
        Mutation::PadZero(128),
        Mutation::DropTail(32),
        Mutation::SkipElement,
        Mutation::Named(SIGN_LOST),
        Mutation::NarrowAccumulator(DType::BF16),
        Mutation::ScaleOutput(1.001),
    ];
    let prefix = [
        Mutation::Overwrite,
        Mutation::OffByOne,
        Mutation::SkipElement,
        Mutation::Named(SIGN_LOST),
        Mutation::NarrowAccumulator(DType::BF16),
        Mutation::ScaleOutput(1.001),
    ];
    let tiled = |size| Style::TRITON.ordered(SummationOrder::Tile(size));
    let tiles = [tiled(16), tiled(64), tiled(512), Style::NUMPY.ordered(SummationOrder::Sequential)];
    vec![
        Family::new(kernel!("prod", prod), &ORDERS, &product),
        Family::new(kernel!("cumprod", cumprod), &tiles, &prefix),
    ]
}

fn times<R: Real>(plan: &Plan, left: R, right: R) -> R {
    let right = if plan.mutation.named(SIGN_LOST) { right.abs() } else { right };
    match plan.mutation {
        Some(Mutation::NarrowAccumulator(dtype)) => R::new(dtype.decode(dtype.encode((left * right).value()))),
        _ => left * right,
    }
}

fn prod<R: Real>(call: &mut Invocation<'_>, plan: &Plan) -> Result<(), RunnerError> {
    reduce(call, plan, R::one(), |lanes: &[R], _| {
        let sequence = |factors: &[R]| factors.iter().fold(R::one(), |product, x| times(plan, product, *x));
        match plan.style.order {
            SummationOrder::Tile(size) | SummationOrder::TileTree(size) => {
                lanes.chunks(size.max(1)).fold(R::one(), |product, tile| times(plan, product, sequence(tile)))
            }
            SummationOrder::Split(parts) => lanes
                .chunks(lanes.len().div_ceil(parts.max(1)).max(1))
                .fold(R::one(), |product, part| times(plan, product, sequence(part))),
            SummationOrder::Lanes32 => (0..32).fold(R::one(), |product, lane| {
                let strided: Vec<R> = lanes.iter().copied().skip(lane).step_by(32).collect();
                times(plan, product, sequence(&strided))
            }),
            SummationOrder::Pairwise => halves(plan, lanes),
            _ => sequence(lanes),
        }
    })
}

/// A balanced tree of products.
fn halves<R: Real>(plan: &Plan, factors: &[R]) -> R {
    match factors {
        [] => R::one(),
        [only] => times(plan, R::one(), *only),
        _ => {
            let (left, right) = factors.split_at(factors.len() / 2);
            times(plan, halves(plan, left), halves(plan, right))
        }
    }
}

fn cumprod<R: Real>(call: &mut Invocation<'_>, plan: &Plan) -> Result<(), RunnerError> {
    let input = required(&call.inputs, 0)?;
    let rows = Rows::of(input);
    let output = &mut call.outputs[0];
    let out_rows = Rows::of(output);
    let tile = match plan.style.order {
        SummationOrder::Tile(size) => size.max(1),
        _ => rows.width.max(1),
    };
    for row in 0..rows.starts.len() {
        let lanes: Vec<R> = load_row(plan, input, &rows, row, R::one())?;
        let mut carry = R::one();
        for (number, chunk) in lanes[..rows.width].chunks(tile).enumerate() {
            let mut running = R::one();
            for (place, x) in chunk.iter().enumerate() {
                let before = running;
                running = times(plan, running, *x);
                let inside = if plan.mutation.is(Mutation::OffByOne) { before } else { running };
                store(output, out_rows.at(row, number * tile + place), scaled(plan, times(plan, carry, inside)))?;
            }
            carry = if plan.mutation.is(Mutation::Overwrite) { running } else { times(plan, carry, running) };
        }
    }
    Ok(())
}
