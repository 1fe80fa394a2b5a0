//! Products of float8 matrices with scales: per row and column, per tensor, and per block.

use super::product::{Products, push, scaled};
use crate::case::Strategy;
use crate::ops::call::all_integers;
use crate::ops::expectation::overflows;
use crate::ops::{Arithmetic, BuiltIn, Call, Expectation, OpError, Overflow, Rounded};
use crate::schema::{Property, Schema};

const BOUND: &str = "u*(F + 5)*sum_k |a||b|*scale_a*scale_b + u|out|, F = F(K), with blocks F(K) + K/S; + \
    2*u_mid*sum_k |a||b|*scale_a*scale_b";
const NOTE: &str = "Sums are float32: the accumulators of about 14 bits of some float8 tensor cores are outside of \
    the bound, unless they are promoted to float32 often enough.";

/// scaled_fp8_matmul.
pub(in crate::ops) fn rowwise() -> BuiltIn {
    let signature = "a:float8_e4m3fn[M,K] b:float8_e4m3fn[K,N] scale_a:float32[M] in positive scale_b:float32[N] in \
        positive bias?[N] -> out[M,N]";
    let schema = described(
        "scaled_fp8_matmul",
        signature,
        "one scale per row of a and one per column of b, as torch._scaled_mm with rowwise scales",
        "scale_a[i]*scale_b[j]",
    )
    .alias(&["scaled_mm", "fp8_scaled_mm", "fp8_rowwise_matmul"])
    .help("scale_a", "one per row of a (per token)")
    .help("scale_b", "one per column of b (per channel)")
    .reduces(&["K"])
    .at_least("K", 1);
    BuiltIn::new(schema, expect_rowwise)
}

/// scaled_fp8_matmul_per_tensor.
pub(in crate::ops) fn tensorwise() -> BuiltIn {
    let signature = "a:float8_e4m3fn[M,K] b:float8_e4m3fn[K,N] scale_a:float32[1] in positive scale_b:float32[1] in \
        positive bias?[N] -> out[M,N]";
    let schema = described(
        "scaled_fp8_matmul_per_tensor",
        signature,
        "one scale for all of a and one for all of b, as torch._scaled_mm with tensorwise scales",
        "scale_a*scale_b",
    )
    .alias(&["fp8_tensorwise_matmul"])
    .help("scale_a", "one for all of a")
    .help("scale_b", "one for all of b")
    .reduces(&["K"])
    .at_least("K", 1);
    BuiltIn::new(schema, expect_tensorwise)
}

/// block_scaled_fp8_matmul.
pub(in crate::ops) fn blockwise() -> BuiltIn {
    let signature = "a:float8_e4m3fn[M,Q*S] scale_a:float32[M,Q] in positive b:float8_e4m3fn[Q*S,N] \
        scale_b:float32[Q,(N+S-1)/S] in positive -> out[M,N]";
    let schema = described(
        "block_scaled_fp8_matmul",
        signature,
        "one scale per row and S numbers along K of a, and \
        one per S x S block of b (the last block of columns may be narrower), as in \
        DeepSeek-V3",
        "scale_a[i,k/S]*scale_b[k/S,j/S]",
    )
    .alias(&["fp8_block_scaled_mm", "w8a8_block_fp8_matmul", "fp8_blockwise_matmul"])
    .help("scale_a", "one per row and group of S numbers along K")
    .help("scale_b", "one per block of S by S numbers; the last block of columns may be narrower")
    .sizes("S", &[16, 32, 64, 128])
    .at_least("Q", 1)
    .at_most("Q", 16)
    .at_most("N", 300);
    BuiltIn::new(schema, expect_blockwise)
}

fn described(name: &str, signature: &str, scales: &str, factor: &str) -> Schema {
    let schema = Schema::builtin(name, signature);
    let biased = schema.inputs.iter().any(|spec| spec.name == "bias");
    let bias = if biased { " + bias[j]" } else { "" };
    let schema = if biased {
        schema.help("bias", "one per column, added after the scales; nothing is added where it is absent")
    } else {
        schema
    };
    schema
        .describe(
            &format!("Matrix product of float8_e4m3fn with {scales}. {NOTE}"),
            &format!("out[i,j] = sum_k a[i,k]*b[k,j]*{factor}{bias}"),
        )
        .keywords(&["gemm", "quantised", "fp8", "float8", "e4m3", "scaled_mm", "deepgemm"])
        .bounded_by(BOUND)
        .holds(&[
            Property::Homogeneous { input: "scale_a", degree: 1 },
            Property::Homogeneous { input: "scale_b", degree: 1 },
        ])
        .amplified_by(&[Strategy::Regular, Strategy::Integers])
        .usual_bugs(&[
            "scale of a neighbouring row, column or block",
            "scale applied to all blocks after the last",
            "scales of a and b swapped",
            "K tail not masked",
        ])
}

fn expect_rowwise(call: &Call<'_>) -> Result<Vec<Expectation>, OpError> {
    let (left, right) = (call.input("scale_a")?, call.input("scale_b")?);
    let inner = call.size("K")?;
    expect(call, 1, inner, |row, _| left[row], |_, column| right[column])
}

fn expect_tensorwise(call: &Call<'_>) -> Result<Vec<Expectation>, OpError> {
    let first = |name: &str| call.input(name)?.first().copied().ok_or_else(|| OpError::MissingInput(name.to_string()));
    let (left, right, inner) = (first("scale_a")?, first("scale_b")?, call.size("K")?);
    expect(call, 1, inner, |_, _| left, |_, _| right)
}

fn expect_blockwise(call: &Call<'_>) -> Result<Vec<Expectation>, OpError> {
    let (left, right) = (call.input("scale_a")?, call.input("scale_b")?);
    let (blocks, block, columns) = (call.size("Q")?, call.size("S")?.max(1), call.size("N")?);
    let across = columns.div_ceil(block);
    let scale_b = |place: usize, column: usize| right[place * across + column / block];
    expect(call, blocks, block, |row, place| left[row * blocks + place], scale_b)
}

/// Sums of `blocks` products over `block` numbers along K, each with its scales.
fn expect(
    call: &Call<'_>,
    blocks: usize,
    block: usize,
    scale_a: impl Fn(usize, usize) -> f64,
    scale_b: impl Fn(usize, usize) -> f64,
) -> Result<Vec<Expectation>, OpError> {
    let (a, b, bias) = (call.input("a")?, call.input("b")?, call.optional("bias"));
    let (rows, columns) = (call.size("M")?, call.size("N")?);
    let inner = blocks * block;
    let arithmetic = Arithmetic::of(call);
    let units = arithmetic.units;
    let summation = call.summation(inner.max(1))? + 2.0;
    let parts: Vec<Vec<f64>> = (0..blocks)
        .map(|place| a.chunks_exact(inner.max(1)).flat_map(|row| row[place * block..][..block].to_vec()).collect())
        .collect();
    let products: Vec<Products<'_>> = parts
        .iter()
        .enumerate()
        .map(|(place, part)| {
            let right = &b[place * block * columns..][..block * columns];
            Products::of(call, part, right, rows, block, columns)
        })
        .collect();
    let mut expectation = Expectation::with_capacity(rows * columns);
    for index in 0..rows * columns {
        let (row, column) = (index / columns, index % columns);
        let terms = products.iter().enumerate().map(|(place, product)| {
            let (left, right) = (scale_a(row, place), scale_b(place, column));
            // Either operand may be scaled, and rounded, before the product.
            let mut sum = product.element(call, index, 0.0, summation);
            if sum.value.is_finite() {
                // Scaled by whole numbers, small whole numbers stay exact.
                let (magnitude, spread) = (product.magnitudes[index], left * right);
                let whole = all_integers(&[left, right]) && magnitude * spread <= units.exact;
                let missing = if whole || sum.error > 0.0 { 0.0 } else { units.u * summation };
                sum = sum.widened((missing + 2.0 * units.mid) * magnitude);
            }
            let mut term = scaled(&arithmetic, sum, &[left, right]);
            if term.value.is_finite() {
                if term.error > 0.0 {
                    term = term.widened(operand_underflow(&arithmetic, block, left, right));
                }
                let largest = LARGEST * left.max(right);
                let total = product.magnitudes[index] * left * right;
                let narrow = overflows(largest, units.mid_max);
                if overflows(largest.max(total), units.max) || narrow {
                    term.overflow = Overflow::Before;
                }
            }
            // Infinities meet in another order where operands are scaled first.
            if left.is_infinite() || right.is_infinite() {
                term.overflow = Overflow::Before;
            }
            term
        });
        let mut y = arithmetic.sum(terms, blocks as f64);
        if let Some(bias) = bias {
            // Where operands are scaled first, the sum may start with the bias.
            let added = Rounded::exact(bias[column]);
            let whole = y.error == 0.0 && added.value.trunc() == added.value;
            let terms: f64 =
                if y.error == 0.0 { products.iter().map(|product| product.magnitudes[index]).sum() } else { 0.0 };
            let spread = scale_a(row, 0) * scale_b(0, column);
            let carried = if whole { 0.0 } else { units.u * summation * (added.value.abs() + terms * spread) };
            y = arithmetic.add(y, added.widened(if y.value.is_finite() { carried } else { 0.0 }));
        }
        if !y.value.is_finite() {
            y.error = 0.0;
        }
        push(&mut expectation, y, "sum*scale_a*scale_b");
    }
    Ok(vec![expectation])
}

/// The largest float8_e4m3fn.
const LARGEST: f64 = 448.0;

/// What is lost where operands are scaled first and they, or their products, become subnormal.
fn operand_underflow(arithmetic: &Arithmetic, block: usize, left: f64, right: f64) -> f64 {
    let units = &arithmetic.units;
    // The smallest float8 is 2^-9.
    let lost = |scale: f64, other: f64| {
        let full = if scale < 512.0 * units.tiny { units.eta + units.flush } else { 0.0 };
        let narrow = if units.mid > 0.0 { units.mid_eta } else { 0.0 };
        (full + narrow) * LARGEST * other
    };
    block as f64 * (lost(left, right) + lost(right, left) + units.eta + units.flush)
}
