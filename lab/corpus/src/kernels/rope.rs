//! rope: a program per token and head, angles computed in the kernel.

use gpuemu_engine::runner::{Invocation, RunnerError};

use super::{Plan, required, scaled};
use crate::memory::{Rows, load, positions, store};
use crate::mutation::{Mutated, Mutation};
use crate::real::Real;
use crate::style::{Division, ExpRoute};

/// Pairs rotated by position·base^(−2i/D).
pub fn rope<R: Real>(call: &mut Invocation<'_>, plan: &Plan) -> Result<(), RunnerError> {
    let (input, position) = (required(&call.inputs, 0)?, required(&call.inputs, 1)?);
    let base = call.parameters.float("base").unwrap_or(10000.0) * plan.mutation.constant();
    let interleaved = call.parameters.flag("interleaved") != plan.mutation.is(Mutation::SwapOperands);
    let (rows, tokens) = (Rows::of(input), positions(position));
    let pairs = rows.width / 2;
    let heads = input.shape()[2].max(1);
    let output = &mut call.outputs[0];
    let out_rows = Rows::of(output);
    let log2_base = R::new(base.log2());
    // exp2 of the accurate kind, or the library's exp: both appear in public kernels.
    let direct = plan.style.exp == ExpRoute::Direct;
    for row in 0..rows.starts.len() {
        let shift = if plan.mutation.is(Mutation::OffByOne) { 1.0 } else { 0.0 };
        let token: f64 = load(position, tokens[row / heads])?;
        let token = R::new(token + shift);
        for pair in 0..pairs {
            let power = R::new(2.0 * pair as f64 / rows.width as f64);
            // base^(2i/D), or its inverse where the kernel multiplies.
            let sign = R::new(if plan.style.division == Division::Exact { -1.0 } else { 1.0 });
            let factor = if direct {
                (sign * power * R::new(base.ln())).exp(ExpRoute::Direct)
            } else {
                (sign * power * log2_base).exp2(ExpRoute::Exp2)
            };
            let angle = if plan.style.division == Division::Exact { token * factor } else { token / factor };
            let (cos, mut sin) = (angle.cos(), angle.sin());
            if plan.mutation.is(Mutation::FlipSign) {
                sin = -sin;
            }
            let (first, second) = if interleaved { (2 * pair, 2 * pair + 1) } else { (pair, pair + pairs) };
            let (x1, x2): (R, R) = (load(input, rows.at(row, first))?, load(input, rows.at(row, second))?);
            store(output, out_rows.at(row, first), scaled(plan, x1 * cos - x2 * sin))?;
            store(output, out_rows.at(row, second), scaled(plan, x2 * cos + x1 * sin))?;
        }
    }
    Ok(())
}
