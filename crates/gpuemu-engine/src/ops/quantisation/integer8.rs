//! To int8 and back: with scales of rows that are computed, and with scales and zero points that are given.

use gpuemu_tensor::DType;

use super::scale::{Scale, push_dequantised};
use crate::case::Strategy;
use crate::ops::{BuiltIn, Call, Expectation, OpError};
use crate::schema::{Property, Scalar, Schema};

const NARROW: [DType; 3] = [DType::F32, DType::F16, DType::BF16];
const CODES: &str = "q: exact, but where x/scale is within its error of a half-way point either neighbour is right";

/// The quantisers and dequantisers of int8.
pub(in crate::ops) fn ops() -> [BuiltIn; 6] {
    [
        BuiltIn::new(per_token(), quantize_per_token),
        BuiltIn::new(from_token(), dequantize_per_token),
        BuiltIn::new(per_tensor(), quantize_per_tensor),
        BuiltIn::new(from_tensor(), dequantize_per_tensor),
        BuiltIn::new(per_channel(), quantize_per_channel),
        BuiltIn::new(from_channel(), dequantize_per_channel),
    ]
}

fn per_token() -> Schema {
    Schema::builtin("quantize_int8_per_token", "input[...,H] eps:float=1e-10 -> q:int8[...,H] scale:float32[...]")
        .alias(&["per_token_quant_int8", "dynamic_scaled_int8_quant"])
        .dtypes(&NARROW)
        .reduces(&["H"])
        .at_least("H", 1)
        .choices("eps", &[Scalar::Float(1e-10), Scalar::Float(0.0), Scalar::Float(0.01)])
        .describe(
            "Rows to int8 with a scale each, symmetric: scale = max(max|x|, eps)/127 in float32, q = x/scale rounded \
            to nearest, ties to even, in -127..127. With eps = 0 a row of zeros has scale 0 and codes 0. A row with \
            Inf has scale Inf and codes 0 for its finite numbers; those of Inf, and scale and codes of rows with \
            NaN, are not judged.",
            "scale = max(max|x|, eps)/127; q = round(x/scale)",
        )
        .help("eps", "smallest max|x| that is divided by 127, so that rows of zeros have a scale")
        .keywords(&["quantise", "dynamic", "activation", "w8a8", "absmax", "symmetric"])
        .bounded_by(&format!("scale: u*Q*scale. {CODES}; that error is u*(2Q + 3)*|x/scale|"))
        .holds(&[Property::PermutationEquivariant, Property::BatchInvariant])
        .amplified_by(&[Strategy::Regular, Strategy::Shifted])
        .usual_bugs(&[
            "truncation in place of rounding",
            "max x in place of max |x|",
            "128 in place of 127",
            "tail \
            of the row not in the maximum",
        ])
}

fn quantize_per_token(call: &Call<'_>) -> Result<Vec<Expectation>, OpError> {
    let (input, width, eps) = (call.input("input")?, call.size("H")?, call.float("eps")?);
    let (mut codes, mut scales) = (Expectation::with_capacity(input.len()), Expectation::default());
    for row in input.chunks_exact(width.max(1)) {
        let scale = Scale::of_row(call, row, 127.0, eps, 0.0);
        scale.push(call, &mut scales);
        row.iter().for_each(|x| scale.quotient(call, *x).code(-127.0, 127.0, 0.0).push(&mut codes));
    }
    Ok(vec![codes, scales])
}

fn dequantizer(name: &str, signature: &str) -> Schema {
    Schema::builtin(name, signature)
        .keywords(&["dequantise", "int8", "w8a8"])
        .bounded_by(
            "0 in float32, u|y| in narrower dtypes; with a zero point + u*((|q| + |zero_point|)*scale + |y|), for \
            kernels that scale both apart",
        )
        .amplified_by(&[Strategy::Regular])
        .usual_bugs(&["code read as uint8", "scale of a neighbouring row", "zero point added in place of subtracted"])
}

fn from_token() -> Schema {
    dequantizer("dequantize_int8_per_token", "q:int8[...,H] in whole scale:float32[...] in positive -> out[...,H]")
        .alias(&["per_token_dequant_int8"])
        .describe("int8 codes times the float32 scale of their row.", "out = q*scale")
        .help("scale", "one per row")
        .holds(&[
            Property::PermutationEquivariant,
            Property::BatchInvariant,
            Property::Homogeneous { input: "scale", degree: 1 },
        ])
}

fn dequantize_per_token(call: &Call<'_>) -> Result<Vec<Expectation>, OpError> {
    let (codes, scales, width) = (call.input("q")?, call.input("scale")?, call.size("H")?);
    let mut expectation = Expectation::with_capacity(codes.len());
    for (row, scale) in codes.chunks_exact(width.max(1)).zip(scales) {
        row.iter().for_each(|code| push_dequantised(call, &mut expectation, *code, 0.0, *scale));
    }
    Ok(vec![expectation])
}

const SCALES: [Scalar; 4] = [Scalar::Float(0.05), Scalar::Float(1.0), Scalar::Float(0.007), Scalar::Float(1.0 / 32.0)];
const ZEROS: [Scalar; 4] = [Scalar::Int(0), Scalar::Int(17), Scalar::Int(-128), Scalar::Int(-3)];
const ROUNDING: &str = "q = round(x/scale) + zero_point, ties to even before the zero point, clamped to -128..127; \
    infinities are clamped, codes of NaN are not judged";

fn quantizer(name: &str, signature: &str) -> Schema {
    Schema::builtin(name, signature)
        .dtypes(&NARROW)
        .keywords(&["quantise", "affine", "static", "zero point", "int8"])
        .bounded_by(&format!("{CODES}; that error is u*(Q + 2)*|x/scale|"))
        .amplified_by(&[Strategy::Regular])
        .usual_bugs(&[
            "truncation in place of rounding",
            "not clamped: large numbers wrap round",
            "zero point subtracted",
            "clamped to -127",
        ])
}

fn per_tensor() -> Schema {
    quantizer("quantize_int8_per_tensor", "input[...] scale:float=0.05 zero_point:int=0 -> q:int8[...]")
        .alias(&["quantize_int8", "quantize_per_tensor", "static_scaled_int8_quant"])
        .choices("scale", &SCALES)
        .choices("zero_point", &ZEROS)
        .describe(
            &format!("To int8 with one scale and zero point, as torch.quantize_per_tensor to qint8: {ROUNDING}."),
            "clamp(round(x/scale) + zero_point, -128, 127)",
        )
        .help("scale", "what one step of the codes stands for, above 0")
        .help("zero_point", "the code of 0, in -128..127")
        .holds(&[Property::PermutationEquivariant, Property::BatchInvariant])
}

fn quantize_per_tensor(call: &Call<'_>) -> Result<Vec<Expectation>, OpError> {
    let (input, zero) = (call.input("input")?, call.int("zero_point")? as f64);
    // As a kernel holds it: rounded to float32 it is another scale, by less than the error of a division.
    let scale = Scale::given(call, call.float("scale")?);
    let mut codes = Expectation::with_capacity(input.len());
    input.iter().for_each(|x| scale.quotient(call, *x).code(-128.0, 127.0, zero).push(&mut codes));
    Ok(vec![codes])
}

fn from_tensor() -> Schema {
    dequantizer("dequantize_int8_per_tensor", "q:int8[...] in whole scale:float=0.05 zero_point:int=0 -> out[...]")
        .alias(&["dequantize_int8", "dequantize_per_tensor"])
        .choices("scale", &SCALES)
        .choices("zero_point", &ZEROS)
        .describe("int8 codes less the zero point, times the scale.", "out = (q - zero_point)*scale")
        .help("scale", "what one step of the codes stands for, above 0")
        .help("zero_point", "the code of 0, in -128..127")
        .holds(&[Property::PermutationEquivariant, Property::BatchInvariant])
}

fn dequantize_per_tensor(call: &Call<'_>) -> Result<Vec<Expectation>, OpError> {
    let (codes, scale, zero) = (call.input("q")?, call.float("scale")?, call.int("zero_point")? as f64);
    let mut expectation = Expectation::with_capacity(codes.len());
    // The kernel has the nearest float32 in place of the scale; in float64 the reference rounds its own product.
    let roundings = if call.units.reference > 0.0 {
        2.0
    } else if f64::from(scale as f32) == scale {
        0.0
    } else {
        1.0
    };
    for code in codes {
        push_dequantised(call, &mut expectation, *code, zero, scale);
        if let (Some(delta), Some(y)) = (expectation.delta.last_mut(), expectation.values.last()) {
            *delta += roundings * call.units.u * y.abs();
        }
    }
    Ok(vec![expectation])
}

fn per_channel() -> Schema {
    quantizer(
        "quantize_int8_per_channel",
        "input[N,K] scale:float32[N] in positive zero_point?:int8[N] in whole -> q:int8[N,K]",
    )
    .alias(&["quantize_per_channel"])
    .describe(
        &format!(
            "To int8 with a scale and zero point per row (axis 0, an output channel of a weight), as \
            torch.quantize_per_channel to qint8: {ROUNDING}. Without zero points they are 0."
        ),
        "clamp(round(x/scale[n]) + zero_point[n], -128, 127)",
    )
    .help("scale", "one per row")
    .help("zero_point", "one per row: the code of 0; 0 where absent")
}

fn quantize_per_channel(call: &Call<'_>) -> Result<Vec<Expectation>, OpError> {
    let (input, scales, zeros) = (call.input("input")?, call.input("scale")?, call.optional("zero_point"));
    let width = call.size("K")?;
    let mut codes = Expectation::with_capacity(input.len());
    for (row, (numbers, scale)) in input.chunks_exact(width.max(1)).zip(scales).enumerate() {
        let (scale, zero) = (Scale::given(call, *scale), zeros.map_or(0.0, |zeros| zeros[row]));
        numbers.iter().for_each(|x| scale.quotient(call, *x).code(-128.0, 127.0, zero).push(&mut codes));
    }
    Ok(vec![codes])
}

fn from_channel() -> Schema {
    dequantizer(
        "dequantize_int8_per_channel",
        "q:int8[N,K] in whole scale:float32[N] in positive zero_point?:int8[N] in whole -> out[N,K]",
    )
    .alias(&["dequantize_per_channel"])
    .describe(
        "int8 codes less the zero point of their row, times its scale. Without zero points they are 0.",
        "out[n,k] = (q[n,k] - zero_point[n])*scale[n]",
    )
    .help("scale", "one per row")
    .help("zero_point", "one per row: the code of 0; 0 where absent")
    .holds(&[Property::Homogeneous { input: "scale", degree: 1 }])
}

fn dequantize_per_channel(call: &Call<'_>) -> Result<Vec<Expectation>, OpError> {
    let (codes, scales, zeros) = (call.input("q")?, call.input("scale")?, call.optional("zero_point"));
    let width = call.size("K")?;
    let mut expectation = Expectation::with_capacity(codes.len());
    for (row, (numbers, scale)) in codes.chunks_exact(width.max(1)).zip(scales).enumerate() {
        let zero = zeros.map_or(0.0, |zeros| zeros[row]);
        numbers.iter().for_each(|code| push_dequantised(call, &mut expectation, *code, zero, *scale));
    }
    Ok(vec![expectation])
}
