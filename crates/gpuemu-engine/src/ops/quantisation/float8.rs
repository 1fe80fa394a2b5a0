//! To float8_e4m3fn and back: per row, per group of a row, and with a scale that is given.

use gpuemu_tensor::DType;

use super::scale::{GROUP_SIZES, LARGEST_FLOAT8, Scale, push_dequantised};
use crate::case::Strategy;
use crate::ops::{BuiltIn, Call, Expectation, OpError};
use crate::schema::{Property, Scalar, Schema};

const NARROW: [DType; 3] = [DType::F32, DType::F16, DType::BF16];
const DYNAMIC: &str = "q = x/scale, clamped to -448..448 and rounded to float8_e4m3fn. Inf makes a scale Inf and the \
    finite numbers beside it 0; what it becomes itself, and scale and numbers where there is a NaN, are not judged.";

/// The quantisers and dequantisers of float8.
pub(in crate::ops) fn ops() -> [BuiltIn; 5] {
    [
        BuiltIn::new(per_token(), quantize_per_token),
        BuiltIn::new(per_block(), quantize_per_block),
        BuiltIn::new(given(), quantize_static),
        BuiltIn::new(from_token(), |call| dequantize(call, call.size("H")?)),
        BuiltIn::new(from_block(), |call| dequantize(call, call.size("group_size")?)),
    ]
}

fn quantizer(name: &str, signature: &str) -> Schema {
    Schema::builtin(name, signature)
        .dtypes(&NARROW)
        .keywords(&["quantise", "fp8", "float8", "e4m3", "scaled_fp8_quant"])
        .amplified_by(&[Strategy::Regular, Strategy::Shifted])
        .usual_bugs(&[
            "not clamped to 448: NaN",
            "240 or 57344 in place of 448",
            "multiplied by the scale in place of its reciprocal",
            "max x in place of max |x|",
        ])
}

fn dynamic(name: &str, signature: &str) -> Schema {
    quantizer(name, signature)
        .choices("eps", &[Scalar::Float(1e-10), Scalar::Float(1.0 / 512.0)])
        .help("eps", "smallest max|x| that is divided by 448, so that zeros have a scale; 1/512 in vLLM")
        .bounded_by("scale: u*Q*scale; q: u*(2Q + 3)*|x/scale|")
}

fn per_token() -> Schema {
    dynamic(
        "quantize_fp8_per_token",
        "input[...,H] eps:float=1e-10 scale_ub:float=0.0 -> q:float8_e4m3fn[...,H] scale:float32[...]",
    )
    .alias(&["per_token_quant_fp8", "dynamic_per_token_scaled_fp8_quant", "quantize_fp8_per_row"])
    .reduces(&["H"])
    .at_least("H", 1)
    .choices("scale_ub", &[Scalar::Float(0.0), Scalar::Float(4.0)])
    .describe(
        &format!(
            "Rows to float8_e4m3fn with a float32 scale each: scale = max(min(max|x|, scale_ub), eps)/448, {DYNAMIC}"
        ),
        "scale = max(min(max|x|, scale_ub), eps)/448; q = float8(clamp(x/scale, -448, 448))",
    )
    .help("scale_ub", "largest max|x| that is divided by 448: what is larger saturates; 0 for no bound")
    .holds(&[Property::PermutationEquivariant, Property::BatchInvariant])
}

fn quantize_per_token(call: &Call<'_>) -> Result<Vec<Expectation>, OpError> {
    quantize(call, call.size("H")?, call.float("scale_ub")?)
}

fn per_block() -> Schema {
    dynamic("quantize_fp8_per_block", "input[T,Q*group_size] group_size:int=128 eps:float=1e-10 -> q:float8_e4m3fn[T,Q*group_size] scale:float32[T,Q]")
        .alias(&["per_token_group_quant_fp8", "act_quant", "per_token_cast_to_fp8"])
        .choices("group_size", &GROUP_SIZES)
        .help("group_size", "numbers that share a scale")
        .at_most("Q", 8)
        .at_most("T", 48)
        .describe(
            &format!(
                "Groups of `group_size` numbers along the rows to float8_e4m3fn with a float32 scale each, as the 1 x 128 \
            groups of DeepSeek-V3: scale = max(max|x|, eps)/448, {DYNAMIC}"
            ),
            "scale[t,g] = max(max_{k in g}|x[t,k]|, eps)/448; q = float8(clamp(x/scale, -448, 448))",
        )
}

fn quantize_per_block(call: &Call<'_>) -> Result<Vec<Expectation>, OpError> {
    quantize(call, call.size("group_size")?, 0.0)
}

fn quantize(call: &Call<'_>, width: usize, upper: f64) -> Result<Vec<Expectation>, OpError> {
    let (input, eps) = (call.input("input")?, call.float("eps")?);
    let (mut numbers, mut scales) = (Expectation::with_capacity(input.len()), Expectation::default());
    for row in input.chunks_exact(width.max(1)) {
        let scale = Scale::of_row(call, row, LARGEST_FLOAT8, eps, upper);
        scale.push(call, &mut scales);
        row.iter().for_each(|x| scale.quotient(call, *x).push_float8(&mut numbers));
    }
    Ok(vec![numbers, scales])
}

fn given() -> Schema {
    quantizer("quantize_fp8_static", "input[...] scale:float32[1] in positive -> q:float8_e4m3fn[...]")
        .alias(&["static_scaled_fp8_quant", "quantize_fp8_per_tensor"])
        .describe(
            "To float8_e4m3fn with one scale that is given: x/scale, clamped to -448..448 (infinities too) and \
            rounded. What NaN becomes is not judged: kernels clamp it or keep it.",
            "q = float8(clamp(x/scale, -448, 448))",
        )
        .help("scale", "one number for the whole tensor")
        .bounded_by("u*(Q + 2)*|x/scale|")
        .holds(&[Property::PermutationEquivariant, Property::BatchInvariant])
}

fn quantize_static(call: &Call<'_>) -> Result<Vec<Expectation>, OpError> {
    let scale = call.input("scale")?.first().copied();
    let scale = Scale::given(call, scale.ok_or_else(|| OpError::MissingInput("scale".to_string()))?);
    let input = call.input("input")?;
    let mut numbers = Expectation::with_capacity(input.len());
    input.iter().for_each(|x| scale.quotient(call, *x).push_float8(&mut numbers));
    Ok(vec![numbers])
}

fn dequantizer(name: &str, signature: &str) -> Schema {
    Schema::builtin(name, signature)
        .keywords(&["dequantise", "fp8", "float8", "e4m3"])
        .bounded_by("0 in float32, u|y| in narrower dtypes: one product")
        .holds(&[Property::Homogeneous { input: "scale", degree: 1 }])
        .amplified_by(&[Strategy::Regular])
        .usual_bugs(&[
            "divided by the scale",
            "scale of a neighbouring row or group",
            "read as float8_e5m2 or float8_e4m3fnuz",
        ])
}

fn from_token() -> Schema {
    dequantizer("dequantize_fp8_per_token", "q:float8_e4m3fn[...,H] scale:float32[...] in positive -> out[...,H]")
        .alias(&["per_token_dequant_fp8"])
        .describe("float8_e4m3fn times the float32 scale of its row; NaN stays NaN.", "out = q*scale")
        .help("scale", "one per row")
        .holds(&[Property::PermutationEquivariant, Property::BatchInvariant])
}

fn from_block() -> Schema {
    dequantizer(
        "dequantize_fp8_per_block",
        "q:float8_e4m3fn[T,Q*group_size] scale:float32[T,Q] in positive group_size:int=128 -> out[T,Q*group_size]",
    )
    .alias(&["per_token_group_dequant_fp8"])
    .choices("group_size", &GROUP_SIZES)
    .help("group_size", "numbers that share a scale")
    .at_most("Q", 8)
    .at_most("T", 48)
    .describe(
        "float8_e4m3fn times the float32 scale of its group of numbers along the row; NaN stays NaN.",
        "out[t,k] = q[t,k]*scale[t,k/group_size]",
    )
    .help("scale", "one per row and group of numbers")
}

fn dequantize(call: &Call<'_>, width: usize) -> Result<Vec<Expectation>, OpError> {
    let (numbers, scales) = (call.input("q")?, call.input("scale")?);
    let mut expectation = Expectation::with_capacity(numbers.len());
    for (row, scale) in numbers.chunks_exact(width.max(1)).zip(scales) {
        row.iter().for_each(|x| push_dequantised(call, &mut expectation, *x, 0.0, *scale));
    }
    Ok(vec![expectation])
}
