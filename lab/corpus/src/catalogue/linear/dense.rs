//! bmm, grouped_matmul and addmm.

use gpuemu_engine::runner::{Invocation, RunnerError};

use super::{ORDERS, mutants, sum_over};
use crate::implementations::Family;
use crate::kernel;
use crate::kernels::{Plan, input, size, write};
use crate::mutation::{Mutated, Mutation};
use crate::real::Real;
use crate::style::Division;

/// The ops and their kernels.
pub(super) fn families() -> Vec<Family> {
    let bmm_own = [Mutation::Named("b of the first entry"), Mutation::SwapOperands, Mutation::FlipSign];
    let grouped_own = [
        Mutation::OffByOne,
        Mutation::Named("one matrix for a tile of rows"),
        Mutation::Named(
            "empty groups \
            counted",
        ),
    ];
    let addmm_own = [
        Mutation::DropFactor,
        Mutation::SwapOperands,
        Mutation::Constant(1.01),
        Mutation::Named("input read where beta is 0"),
        Mutation::Named("alpha of the sum of both"),
    ];
    vec![
        Family::new(kernel!("bmm", bmm), &ORDERS, &mutants(&bmm_own)),
        Family::new(kernel!("grouped_matmul", grouped), &ORDERS, &mutants(&grouped_own)),
        Family::new(kernel!("addmm", addmm), &ORDERS, &mutants(&addmm_own)),
    ]
}

fn bmm<R: Real>(call: &mut Invocation<'_>, plan: &Plan) -> Result<(), RunnerError> {
    let (a, b): (Vec<R>, Vec<R>) = (input(call, "a")?, input(call, "b")?);
    let [batch, rows, inner, columns] = ["B", "M", "K", "N"].map(|name| size(call, name));
    let mut values = Vec::with_capacity(batch * rows * columns);
    for entry in 0..batch {
        let shared = if plan.mutation.named("b of the first entry") { 0 } else { entry };
        for row in 0..rows {
            for column in 0..columns {
                values.push(sum_over(plan, inner, |k| {
                    let x = a[(entry * rows + row) * inner + k];
                    // Rows of b taken for columns, as far as it has them.
                    let (down, across) = if plan.mutation.is(Mutation::SwapOperands) && inner == columns {
                        (column, k)
                    } else {
                        (k, column)
                    };
                    let y = b[(shared * inner + down) * columns + across];
                    if plan.mutation.is(Mutation::FlipSign) && k % 2 == 1 { -(x * y) } else { x * y }
                }));
            }
        }
    }
    write(plan, &mut call.outputs[0], &values)
}

fn grouped<R: Real>(call: &mut Invocation<'_>, plan: &Plan) -> Result<(), RunnerError> {
    let (a, b): (Vec<R>, Vec<R>) = (input(call, "a")?, input(call, "b")?);
    let offsets: Vec<f64> = input(call, "offsets")?;
    let [tokens, inner, columns, groups] = ["T", "K", "N", "E"].map(|name| size(call, name));
    let mut values = Vec::with_capacity(tokens * columns);
    for token in 0..tokens {
        // A program handles tokens one by one; with the mutation it looks at the first of its tile.
        let looked_at = if plan.mutation.named("one matrix for a tile of rows") { token / 16 * 16 } else { token };
        let passed = |end: &&f64| {
            let before = looked_at as f64;
            if plan.mutation.is(Mutation::OffByOne) { **end < before } else { **end <= before }
        };
        let mut group = offsets[1..].iter().filter(passed).count();
        if plan.mutation.named("empty groups counted") {
            let empty = offsets.windows(2).take(group).filter(|ends| ends[0] == ends[1]).count();
            group -= empty;
        }
        let group = group.min(groups.saturating_sub(1));
        for column in 0..columns {
            values.push(sum_over(plan, inner, |k| a[token * inner + k] * b[(group * inner + k) * columns + column]));
        }
    }
    write(plan, &mut call.outputs[0], &values)
}

fn addmm<R: Real>(call: &mut Invocation<'_>, plan: &Plan) -> Result<(), RunnerError> {
    let (added, a, b): (Vec<R>, Vec<R>, Vec<R>) = (input(call, "input")?, input(call, "mat1")?, input(call, "mat2")?);
    let [rows, inner, columns] = ["M", "K", "N"].map(|name| size(call, name));
    let parameter = |name: &str| call.parameters.float(name).unwrap_or(1.0);
    let (mut alpha, mut beta) = (parameter("alpha") * plan.mutation.constant(), parameter("beta"));
    if plan.mutation.is(Mutation::SwapOperands) {
        (alpha, beta) = (beta, alpha);
    }
    if plan.mutation.is(Mutation::DropFactor) {
        alpha = 1.0;
    }
    let unread = beta == 0.0 && !plan.mutation.named("input read where beta is 0");
    let (alpha, beta) = (R::new(alpha), R::new(beta));
    let mut values = Vec::with_capacity(rows * columns);
    for row in 0..rows {
        for column in 0..columns {
            let early = plan.style.division == Division::Approximate;
            let product = sum_over(plan, inner, |k| {
                let (x, y) = (a[row * inner + k], b[k * columns + column]);
                if early { (x * alpha) * y } else { x * y }
            });
            let mut value = if early { product } else { product * alpha };
            if !unread {
                let extra = beta * added[row * columns + column];
                let both = plan.mutation.named("alpha of the sum of both");
                value = value + if both { extra * alpha } else { extra };
            }
            values.push(value);
        }
    }
    write(plan, &mut call.outputs[0], &values)
}
