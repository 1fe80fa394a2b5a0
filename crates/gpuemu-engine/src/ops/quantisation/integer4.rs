//! To 4 bits, two codes to a byte, with a scale per group; and back.

use gpuemu_tensor::DType;

use super::scale::{Code, GROUP_SIZES, Scale, push_dequantised};
use crate::case::Strategy;
use crate::ops::{BuiltIn, Call, Expectation, OpError};
use crate::schema::{Property, Scalar, Schema};

const PACKING: &str = "two to a byte, the one with the even index in the lower nibble";

/// quantize_int4_per_group.
pub(in crate::ops) fn quantizer() -> BuiltIn {
    BuiltIn::new(
        grouped(Schema::builtin(
            "quantize_int4_per_group",
            "input[N,Q*group_size] group_size:int=128 eps:float=1e-10 -> packed:uint8[N,Q*group_size/2] scale:float32[N,Q]",
        ))
        .alias(&["int4_groupwise_quantize", "quantize_int4"])
        .dtypes(&[DType::F32, DType::F16, DType::BF16])
        .choices("eps", &[Scalar::Float(1e-10), Scalar::Float(0.01)])
        .describe(
            &format!(
                "Groups of `group_size` numbers along the rows to 4 bits with a scale each, symmetric: scale = max(max|x|, \
                eps)/7 in float32, code = x/scale rounded to nearest, ties to even, in -8..7, stored with 8 added, \
                {PACKING}. A group with Inf has scale Inf and codes 0 for its finite numbers; those of Inf, and \
                scale and codes of groups with NaN, are not judged."
            ),
            "scale = max(max|x|, eps)/7; nibble = round(x/scale) + 8",
        )
        .help("eps", "smallest max|x| that is divided by 7, so that groups of zeros have a scale")
        .keywords(&["quantise", "int4", "w4a16", "group", "pack", "nibble", "symmetric"])
        .bounded_by(
            "scale: u*Q*scale. packed: exact, but where x/scale is within u*(2Q + 3)*|x/scale| of a half-way point \
            either neighbour is right",
        )
        .amplified_by(&[Strategy::Regular, Strategy::Shifted])
        .usual_bugs(&[
            "nibbles in the wrong order",
            "8 in place of 7 as divisor",
            "offset of 8 missing",
            "group of \
            the neighbouring row",
        ]),
        quantize,
    )
}

/// dequantize_int4_per_group.
pub(in crate::ops) fn dequantizer() -> BuiltIn {
    BuiltIn::new(
        grouped(Schema::builtin(
            "dequantize_int4_per_group",
            "packed:uint8[N,Q*(group_size/2)] in whole scale:float32[N,Q] in positive zeros?:uint8[N,Q] in 0..16 \
             group_size:int=128 -> out[N,Q*group_size]",
        ))
        .alias(&["int4_groupwise_dequantize", "dequantize_int4"])
        .describe(
            &format!(
                "4-bit codes, {PACKING}, less the zero point of their group, times its scale. Without zeros the \
                zero point is 8."
            ),
            "out[n,k] = (nibble k%2 of packed[n,k/2] - zeros[n,k/group_size])*scale[n,k/group_size]",
        )
        .help("scale", "one per group")
        .help("zeros", "the nibble that stands for 0, per group; 8 where absent")
        .keywords(&["dequantise", "int4", "w4a16", "group", "unpack", "nibble", "awq", "gptq"])
        .bounded_by("u*((nibble + zero)*scale + |y|), + u|y| in dtypes narrower than float32: both may be scaled apart")
        .holds(&[Property::Homogeneous { input: "scale", degree: 1 }])
        .amplified_by(&[Strategy::Regular])
        .usual_bugs(&[
            "nibbles in the wrong order",
            "zero point of 7 or none",
            "scale of the neighbouring group",
        ]),
        dequantize,
    )
}

fn grouped(schema: Schema) -> Schema {
    schema
        .choices("group_size", &GROUP_SIZES)
        .help("group_size", "numbers that share a scale; even")
        .at_most("Q", 8)
        .at_most("N", 48)
        .help("packed", PACKING)
}

fn quantize(call: &Call<'_>) -> Result<Vec<Expectation>, OpError> {
    let (input, group, eps) = (call.input("input")?, call.size("group_size")?, call.float("eps")?);
    let (mut packed, mut scales) = (Expectation::with_capacity(input.len() / 2), Expectation::default());
    for numbers in input.chunks_exact(group.max(1)) {
        let scale = Scale::of_row(call, numbers, 7.0, eps, 0.0);
        scale.push(call, &mut scales);
        let code = |x: f64| -> Code { scale.quotient(call, x).code(-8.0, 7.0, 0.0) };
        for pair in numbers.chunks_exact(2) {
            code(pair[0]).packed(code(pair[1])).push(&mut packed);
        }
    }
    Ok(vec![packed, scales])
}

fn dequantize(call: &Call<'_>) -> Result<Vec<Expectation>, OpError> {
    let (packed, scales, zeros) = (call.input("packed")?, call.input("scale")?, call.optional("zeros"));
    let group = call.size("group_size")?;
    let mut expectation = Expectation::with_capacity(2 * packed.len());
    for (place, (bytes, scale)) in packed.chunks_exact((group / 2).max(1)).zip(scales).enumerate() {
        let zero = zeros.map_or(8.0, |zeros| zeros[place]);
        for byte in bytes.iter().map(|byte| *byte as u8) {
            push_dequantised(call, &mut expectation, f64::from(byte & 15), zero, *scale);
            push_dequantised(call, &mut expectation, f64::from(byte >> 4), zero, *scale);
        }
    }
    Ok(vec![expectation])
}
