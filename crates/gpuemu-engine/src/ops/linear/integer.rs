//! Products of 8-bit whole numbers: as they are, and with the scales of W8A8.

use gpuemu_tensor::DType;

use super::product::{Products, push, scaled};
use crate::case::Strategy;
use crate::ops::{Arithmetic, BuiltIn, Call, Expectation, OpError, Rounded};
use crate::schema::{Property, Schema};

/// int8_matmul.
pub(in crate::ops) fn plain() -> BuiltIn {
    BuiltIn::new(
        Schema::builtin("int8_matmul", "a:int8[M,K] in whole b:int8[K,N] in whole -> out:int32[M,N]")
            .alias(&["int_mm", "int8_gemm", "s8s8s32_matmul"])
            .describe(
                "Matrix product of int8 with an int32 accumulator, as torch._int_mm: exact, every bit of it.",
                "out[i,j] = sum_k int32(a[i,k])*int32(b[k,j])",
            )
            .keywords(&["gemm", "quantised", "dp4a", "imma", "integer", "w8a8"])
            .reduces(&["K"])
            .dtypes(&[DType::F32])
            .bounded_by("0: whole numbers are exact in every order")
            .amplified_by(&[Strategy::Boundary, Strategy::Regular])
            .usual_bugs(&[
                "accumulator of 16 bits overflows",
                "operand read as uint8",
                "accumulation in float32 loses bits above 2^24",
                "K tail not masked",
            ]),
        expect_plain,
    )
}

/// w8a8_matmul.
pub(in crate::ops) fn with_scales() -> BuiltIn {
    BuiltIn::new(
        Schema::builtin(
            "w8a8_matmul",
            "a:int8[M,K] in whole b:int8[K,N] in whole a_scale:float32[M] in positive b_scale:float32[N] in positive \
            bias?:float32[N] -> out[M,N]",
        )
        .alias(&["int8_scaled_mm", "int8_scaled_matmul", "scaled_int8_matmul"])
        .describe(
            "Matrix product of int8 with an exact int32 accumulator, scaled by one number per row (token) and one \
            per column (channel), plus a bias.",
            "out[i,j] = (sum_k a[i,k]*b[k,j])*a_scale[i]*b_scale[j] + bias[j]",
        )
        .help("a_scale", "one per row of a (per token)")
        .help("b_scale", "one per column of b (per output channel)")
        .help("bias", "one per column, added after the scales; nothing is added where it is absent")
        .keywords(&["gemm", "quantised", "dequantise", "per token", "per channel", "smoothquant"])
        .reduces(&["K"])
        .bounded_by(
            "u*(3|y| + |out|): the sum is exact, its conversion to float32, the two scales in any order and the bias \
            round once each",
        )
        .holds(&[
            Property::Homogeneous { input: "a_scale", degree: 1 },
            Property::Homogeneous { input: "b_scale", degree: 1 },
        ])
        .amplified_by(&[Strategy::Boundary, Strategy::Regular])
        .usual_bugs(&[
            "scale of the column applied to the row",
            "accumulator of 16 bits overflows",
            "bias added before the scales",
        ]),
        expect_scaled,
    )
}

fn expect_plain(call: &Call<'_>) -> Result<Vec<Expectation>, OpError> {
    let (a, b) = (call.input("a")?, call.input("b")?);
    let (rows, inner, columns) = (call.size("M")?, call.size("K")?, call.size("N")?);
    let product = Products::of(call, a, b, rows, inner, columns);
    let mut expectation = Expectation::with_capacity(product.values.len());
    for (y, magnitude) in product.values.iter().zip(&product.magnitudes) {
        if *magnitude > f64::from(i32::MAX) {
            expectation.push_undetermined(*y, "the int32 accumulator may overflow");
        } else {
            expectation.push(*y, 0.0);
        }
    }
    Ok(vec![expectation])
}

fn expect_scaled(call: &Call<'_>) -> Result<Vec<Expectation>, OpError> {
    let (a, b, bias) = (call.input("a")?, call.input("b")?, call.optional("bias"));
    let (row_scale, column_scale) = (call.input("a_scale")?, call.input("b_scale")?);
    let (rows, inner, columns) = (call.size("M")?, call.size("K")?, call.size("N")?);
    let product = Products::of(call, a, b, rows, inner, columns);
    let arithmetic = Arithmetic::of(call);
    let mut expectation = Expectation::with_capacity(product.values.len());
    for (index, sum) in product.values.iter().enumerate() {
        let (row, column) = (index / columns, index % columns);
        if product.magnitudes[index] > f64::from(i32::MAX) {
            expectation.push_undetermined(f64::NAN, "the int32 accumulator may overflow");
            continue;
        }
        let exact = sum.abs() <= arithmetic.units.exact;
        let converted = Rounded::exact(*sum);
        let converted = if exact { converted } else { arithmetic.slack(converted, 1.0) };
        let mut y = scaled(&arithmetic, converted, &[row_scale[row], column_scale[column]]);
        if let Some(bias) = bias {
            y = arithmetic.add(y, Rounded::exact(bias[column]));
        }
        push(&mut expectation, y, "sum*a_scale*b_scale");
    }
    Ok(vec![expectation])
}
