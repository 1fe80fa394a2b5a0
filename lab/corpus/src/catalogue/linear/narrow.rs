//! Products of int8 and of float8 matrices, with scales.

use gpuemu_engine::runner::{Invocation, RunnerError};
use gpuemu_tensor::DType;

use super::{ORDERS, mutants, rounded, steps, sum_over};
use crate::implementations::Family;
use crate::kernel;
use crate::kernels::{Kernel, Plan, elements, input, size, write};
use crate::mutation::{Mutated, Mutation};
use crate::real::Real;
use crate::style::{Division, Style};

const SHORT: Mutation = Mutation::Named("accumulator of 16 bits");
const UNSIGNED: Mutation = Mutation::Named("b read as uint8");

/// The ops and their kernels.
pub(super) fn families() -> Vec<Family> {
    let whole = [
        Mutation::DropTail(super::TILE),
        Mutation::Overwrite,
        Mutation::SkipElement,
        SHORT,
        UNSIGNED,
        Mutation::Named("accumulator in bfloat16"),
        Mutation::ScaleOutput(1.01),
    ];
    let scales = [
        Mutation::Named("neighbouring scale of a"),
        Mutation::Named("neighbouring scale of b"),
        Mutation::Named("scale of b missing"),
        Mutation::Named("bias before the scales"),
    ];
    let mut w8a8 = whole.to_vec();
    w8a8.extend_from_slice(&scales);
    let mut dequantised = ORDERS.to_vec();
    dequantised.push(Style { intermediate: Some(DType::BF16), ..ORDERS[1] });
    vec![
        Family::new(Kernel { op: "int8_matmul", single: int8_matmul, double: int8_matmul }, &ORDERS, &whole),
        Family::new(kernel!("w8a8_matmul", w8a8_matmul), &ORDERS, &w8a8),
        Family::new(kernel!("scaled_fp8_matmul", scaled_fp8_matmul), &dequantised, &mutants(&scales)),
        Family::new(
            kernel!("scaled_fp8_matmul_per_tensor", scaled_fp8_matmul),
            &dequantised,
            &mutants(&[scales[2], scales[3], Mutation::Named("scale squared")]),
        ),
        Family::new(
            kernel!("block_scaled_fp8_matmul", block_scaled_fp8_matmul),
            &dequantised,
            &mutants(&[scales[0], scales[1], scales[2], Mutation::Named("one scale for all blocks")]),
        ),
    ]
}

/// Σ a·b in whole numbers, as dp4a and imma make it.
fn integer_sums(call: &Invocation<'_>, plan: &Plan) -> Result<Vec<i64>, RunnerError> {
    let (a, b): (Vec<f64>, Vec<f64>) = (input(call, "a")?, input(call, "b")?);
    let [rows, inner, columns] = ["M", "K", "N"].map(|name| size(call, name));
    let mut sums = Vec::with_capacity(rows * columns);
    for row in 0..rows {
        for column in 0..columns {
            let mut sum = 0i64;
            let mut taken = steps(plan, inner);
            if plan.style.division == Division::Approximate {
                taken.reverse();
            }
            for k in taken {
                let (x, mut y) = (a[row * inner + k] as i64, b[k * columns + column] as i64);
                if plan.mutation == Some(UNSIGNED) {
                    y &= 255;
                }
                sum += x * y;
                if plan.mutation == Some(SHORT) {
                    sum = i64::from(sum as i16);
                }
                if plan.mutation.named("accumulator in bfloat16") {
                    sum = DType::BF16.decode(DType::BF16.encode(sum as f64)) as i64;
                }
            }
            sums.push(sum);
        }
    }
    Ok(sums)
}

fn int8_matmul(call: &mut Invocation<'_>, plan: &Plan) -> Result<(), RunnerError> {
    // Whole numbers, whatever the arithmetic: float32 would not hold them all.
    let values: Vec<f64> = integer_sums(call, plan)?.into_iter().map(|sum| sum as f64).collect();
    write(plan, &mut call.outputs[0], &values)
}

/// The scales of one element: right, or those of a neighbour.
fn scale_at<R: Real>(plan: &Plan, scales: &[R], name: &str, place: usize) -> R {
    let wrong = plan.mutation.named(&format!("neighbouring scale of {name}"));
    let place = if wrong { (place + 1) % scales.len().max(1) } else { place };
    let scale = if scales.len() == 1 { scales[0] } else { scales[place] };
    if name == "b" && plan.mutation.named("scale of b missing") { R::one() } else { scale }
}

/// sum·left·right + bias, in the kernel's order of factors.
fn with_scales<R: Real>(plan: &Plan, sum: R, left: R, right: R, bias: Option<R>) -> R {
    let early = plan.mutation.named("bias before the scales");
    let sum = match bias {
        Some(bias) if early => sum + bias,
        _ => sum,
    };
    let product = match plan.style.division {
        Division::Exact => (sum * left) * right,
        Division::Reciprocal => sum * (left * right),
        Division::Approximate => (sum * right) * left,
    };
    let product = if plan.mutation.named("scale squared") { product * left } else { product };
    match bias {
        Some(bias) if !early => product + bias,
        _ => product,
    }
}

fn w8a8_matmul<R: Real>(call: &mut Invocation<'_>, plan: &Plan) -> Result<(), RunnerError> {
    let (left, right): (Vec<R>, Vec<R>) = (input(call, "a_scale")?, input(call, "b_scale")?);
    let bias: Option<Vec<R>> = elements(call, "bias")?;
    let columns = size(call, "N");
    let mut values = Vec::new();
    for (index, sum) in integer_sums(call, plan)?.into_iter().enumerate() {
        let (row, column) = (index / columns, index % columns);
        let (left, right) = (scale_at(plan, &left, "a", row), scale_at(plan, &right, "b", column));
        let bias = bias.as_ref().map(|bias| bias[column]);
        values.push(with_scales(plan, R::new(sum as f64), left, right, bias));
    }
    write(plan, &mut call.outputs[0], &values)
}

fn scaled_fp8_matmul<R: Real>(call: &mut Invocation<'_>, plan: &Plan) -> Result<(), RunnerError> {
    let (a, b): (Vec<R>, Vec<R>) = (input(call, "a")?, input(call, "b")?);
    let (scale_a, scale_b): (Vec<R>, Vec<R>) = (input(call, "scale_a")?, input(call, "scale_b")?);
    let bias: Option<Vec<R>> = elements(call, "bias")?;
    let [rows, inner, columns] = ["M", "K", "N"].map(|name| size(call, name));
    // Operands may be scaled before the product, and must be where they are rounded after it.
    let first = plan.style.intermediate.is_some();
    let mut values = Vec::with_capacity(rows * columns);
    for row in 0..rows {
        for column in 0..columns {
            let (left, right) = (scale_at(plan, &scale_a, "a", row), scale_at(plan, &scale_b, "b", column));
            let bias = bias.as_ref().map(|bias| bias[column]);
            let sum = sum_over(plan, inner, |k| {
                let (x, y) = (a[row * inner + k], b[k * columns + column]);
                if first { rounded(plan, x * left) * rounded(plan, y * right) } else { x * y }
            });
            let one = R::one();
            let (left, right) = if first { (one, one) } else { (left, right) };
            values.push(with_scales(plan, sum, left, right, bias));
        }
    }
    write(plan, &mut call.outputs[0], &values)
}

fn block_scaled_fp8_matmul<R: Real>(call: &mut Invocation<'_>, plan: &Plan) -> Result<(), RunnerError> {
    let (a, b): (Vec<R>, Vec<R>) = (input(call, "a")?, input(call, "b")?);
    let (scale_a, scale_b): (Vec<R>, Vec<R>) = (input(call, "scale_a")?, input(call, "scale_b")?);
    let [rows, columns, blocks, block] = ["M", "N", "Q", "S"].map(|name| size(call, name));
    let (inner, across) = (blocks * block, columns.div_ceil(block.max(1)));
    let first = plan.style.intermediate.is_some() || plan.style.division == Division::Reciprocal;
    let mut values = Vec::with_capacity(rows * columns);
    for row in 0..rows {
        for column in 0..columns {
            let scales = |place: usize| {
                let place = if plan.mutation.named("one scale for all blocks") { 0 } else { place };
                let left = scale_at(plan, &scale_a, "a", row * blocks + place);
                (left, scale_at(plan, &scale_b, "b", place * across + column / block))
            };
            let product = |k: usize| (a[row * inner + k], b[k * columns + column]);
            if first {
                values.push(sum_over(plan, inner, |k| {
                    let ((x, y), (left, right)) = (product(k), scales(k / block));
                    rounded(plan, x * left) * rounded(plan, y * right)
                }));
                continue;
            }
            let taken = steps(plan, inner);
            let mut total = R::zero();
            for place in 0..blocks {
                let terms: Vec<R> = taken
                    .iter()
                    .filter(|k| **k / block == place)
                    .map(|k| {
                        let (x, y) = product(*k);
                        x * y
                    })
                    .collect();
                let (left, right) = scales(place);
                total = total + with_scales(plan, crate::kernels::add_up(plan, &terms), left, right, None);
            }
            values.push(total);
        }
    }
    write(plan, &mut call.outputs[0], &values)
}
