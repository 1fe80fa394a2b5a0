//! w8a16_matmul and w4a16_matmul: weights dequantised in registers, or scales after the sums.

use gpuemu_engine::runner::{Invocation, RunnerError};
use gpuemu_tensor::DType;

use super::{ORDERS, mutants, rounded, steps, sum_over};
use crate::implementations::Family;
use crate::kernel;
use crate::kernels::{Plan, add_up, elements, input, size, write};
use crate::mutation::{Mutated, Mutation};
use crate::real::Real;
use crate::style::{Division, Style};

/// The ops and their kernels.
pub(super) fn families() -> Vec<Family> {
    let mut styles = ORDERS.to_vec();
    styles.push(Style { intermediate: Some(DType::BF16), ..ORDERS[1] });
    styles.push(Style { intermediate: Some(DType::F16), ..ORDERS[2] });
    let eight = [
        Mutation::Named("weight read as uint8"),
        Mutation::Named("neighbouring scale"),
        Mutation::Named("bias before the scale"),
    ];
    let four = [
        Mutation::Named("upper nibble first"),
        Mutation::Named("neighbouring group"),
        Mutation::Named("zero point off by one"),
        Mutation::Named("nibble read as signed"),
    ];
    let mut grouped = styles.clone();
    grouped.push(Style { folded: true, ..ORDERS[0] });
    // K is a multiple of 32: a tail needs wider tiles.
    let mut four_mutants = mutants(&four);
    four_mutants[0] = Mutation::DropTail(128);
    vec![
        Family::new(kernel!("w8a16_matmul", w8a16_matmul), &styles, &mutants(&eight)),
        Family::new(kernel!("w4a16_matmul", w4a16_matmul), &grouped, &four_mutants),
    ]
}

fn w8a16_matmul<R: Real>(call: &mut Invocation<'_>, plan: &Plan) -> Result<(), RunnerError> {
    let (a, weight, scale): (Vec<R>, Vec<f64>, Vec<R>) =
        (input(call, "a")?, input(call, "weight")?, input(call, "scale")?);
    let bias: Option<Vec<R>> = elements(call, "bias")?;
    let [rows, inner, columns] = ["M", "K", "N"].map(|name| size(call, name));
    let after = plan.style.division == Division::Exact;
    let mut values = Vec::with_capacity(rows * columns);
    for row in 0..rows {
        for column in 0..columns {
            let wrong = plan.mutation.named("neighbouring scale");
            let factor = scale[if wrong { (column + 1) % columns } else { column }];
            let mut sum = sum_over(plan, inner, |k| {
                let mut code = weight[column * inner + k];
                if plan.mutation.named("weight read as uint8") && code < 0.0 {
                    code += 256.0;
                }
                let y = R::new(code);
                a[row * inner + k] * if after { y } else { rounded(plan, y * factor) }
            });
            let bias = bias.as_ref().map_or(R::zero(), |bias| bias[column]);
            let early = plan.mutation.named("bias before the scale");
            if early {
                sum = sum + bias;
            }
            sum = if after { sum * factor } else { sum };
            values.push(if early { sum } else { sum + bias });
        }
    }
    write(plan, &mut call.outputs[0], &values)
}

fn w4a16_matmul<R: Real>(call: &mut Invocation<'_>, plan: &Plan) -> Result<(), RunnerError> {
    let (a, weight, scales): (Vec<R>, Vec<f64>, Vec<R>) =
        (input(call, "a")?, input(call, "weight")?, input(call, "scales")?);
    let zeros: Option<Vec<R>> = elements(call, "zeros")?;
    let [rows, columns, groups, group] = ["M", "N", "Q", "S"].map(|name| size(call, name));
    let inner = groups * group;
    let nibble = |k: usize, column: usize| -> R {
        let byte = weight[k / 2 * columns + column] as u8;
        let lower = k.is_multiple_of(2) != plan.mutation.named("upper nibble first");
        let code = f64::from(if lower { byte & 15 } else { byte >> 4 });
        R::new(if plan.mutation.named("nibble read as signed") && code > 7.0 { code - 16.0 } else { code })
    };
    let zero = |place: usize| {
        let zero = zeros.as_ref().map_or(R::new(8.0), |zeros| zeros[place]);
        if plan.mutation.named("zero point off by one") { zero + R::one() } else { zero }
    };
    let place_of = |k: usize, column: usize| {
        let wrong = plan.mutation.named("neighbouring group");
        (if wrong { (k / group + 1) % groups } else { k / group }) * columns + column
    };
    let mut values = Vec::with_capacity(rows * columns);
    for row in 0..rows {
        for column in 0..columns {
            if plan.style.division != Division::Exact {
                values.push(sum_over(plan, inner, |k| {
                    let place = place_of(k, column);
                    let (code, zero, scale) = (nibble(k, column), zero(place), scales[place]);
                    // Both parts may be scaled before they are subtracted.
                    let apart = plan.style.division == Division::Reciprocal;
                    let y = if apart { code * scale - zero * scale } else { (code - zero) * scale };
                    a[row * inner + k] * rounded(plan, y)
                }));
                continue;
            }
            let mut total = R::zero();
            let taken = steps(plan, inner);
            for number in 0..groups {
                let own: Vec<usize> = taken.iter().copied().filter(|k| k / group == number).collect();
                let place = place_of(number * group, column);
                let x = |k: &usize| a[row * inner + k];
                let sum = if plan.style.folded {
                    let codes: Vec<R> = own.iter().map(|k| x(k) * nibble(*k, column)).collect();
                    let plain: Vec<R> = own.iter().map(x).collect();
                    add_up(plan, &codes) - zero(place) * add_up(plan, &plain)
                } else {
                    let terms: Vec<R> = own.iter().map(|k| x(k) * (nibble(*k, column) - zero(place))).collect();
                    add_up(plan, &terms)
                };
                total = total + sum * scales[place];
            }
            values.push(total);
        }
    }
    write(plan, &mut call.outputs[0], &values)
}
