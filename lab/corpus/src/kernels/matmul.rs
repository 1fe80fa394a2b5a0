//! matmul in 32×32 tiles, K in steps of 32.

use gpuemu_engine::runner::{Buffer, Invocation, RunnerError};
use gpuemu_engine::schema::SummationOrder;

use super::{Plan, add_up, required, scaled};
use crate::memory::{load, store};
use crate::mutation::{Mutated, Mutation};
use crate::real::Real;

const TILE: usize = 32;

/// A matrix by row and column, also beyond its edge.
struct Matrix<'a> {
    buffer: &'a Buffer,
}

impl Matrix<'_> {
    fn at<R: Real>(&self, row: usize, column: usize) -> Result<R, RunnerError> {
        let strides = self.buffer.strides();
        let place = row as isize * strides[0] + column as isize * strides[1];
        load(self.buffer, self.buffer.offset() as isize + place)
    }
}

/// A·B.
pub fn matmul<R: Real>(call: &mut Invocation<'_>, plan: &Plan) -> Result<(), RunnerError> {
    let (a, b) = (required(&call.inputs, 0)?, required(&call.inputs, 1)?);
    let [rows, inner] = *a.shape() else { return Err(RunnerError::Raised("a is not a matrix".to_string())) };
    let columns = b.shape().last().copied().unwrap_or(0);
    // Masked loads give zeros, which add nothing: only a missing mask makes the edge matter.
    let depth = if plan.mutation.is(Mutation::DropMask) { inner.next_multiple_of(TILE) } else { inner };
    let (left, right) = (Matrix { buffer: a }, Matrix { buffer: b });
    let mut left_values = Vec::with_capacity(rows * depth);
    for row in 0..rows {
        for k in 0..depth {
            left_values.push(left.at::<R>(row, k)?);
        }
    }
    let mut right_values = Vec::with_capacity(depth * columns);
    for k in 0..depth {
        for column in 0..columns {
            right_values.push(right.at::<R>(k, column)?);
        }
    }
    let output = &mut call.outputs[0];
    let start = output.offset();
    let mut accumulators = vec![R::zero(); columns];
    let tiled = plan.style.order == SummationOrder::Sequential
        && !matches!(plan.mutation, Some(Mutation::NarrowAccumulator(_)));
    for row in 0..rows {
        let left = &left_values[row * depth..(row + 1) * depth];
        if tiled {
            tile_row(plan, left, &right_values, inner, &mut accumulators);
        } else {
            for (column, accumulator) in accumulators.iter_mut().enumerate() {
                let terms: Vec<R> = (0..depth).map(|k| left[k] * right_values[k * columns + column]).collect();
                *accumulator = add_up(plan, &terms);
            }
        }
        for (column, value) in accumulators.iter().enumerate() {
            store(output, (start + row * columns + column) as isize, scaled(plan, *value))?;
        }
    }
    Ok(())
}

/// One row of the output, K tile by K tile.
fn tile_row<R: Real>(plan: &Plan, left: &[R], right: &[R], inner: usize, accumulators: &mut [R]) {
    let columns = accumulators.len();
    accumulators.fill(R::zero());
    for tile in (0..left.len()).step_by(TILE) {
        let end = (tile + TILE).min(left.len());
        if plan.mutation.is(Mutation::Overwrite) {
            accumulators.fill(R::zero());
        }
        if matches!(plan.mutation, Some(Mutation::DropTail(_))) && end - tile < TILE && tile > 0 {
            continue;
        }
        for k in tile..end {
            if plan.mutation.is(Mutation::SkipElement) && k == inner / 2 && inner > 1 {
                continue;
            }
            let x = left[k];
            for (accumulator, y) in accumulators.iter_mut().zip(&right[k * columns..(k + 1) * columns]) {
                *accumulator = *accumulator + x * *y;
            }
        }
    }
}
