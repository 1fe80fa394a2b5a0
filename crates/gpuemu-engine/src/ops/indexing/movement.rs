//! transpose, concat, pad, roll, flip and masked_fill: elements moved by position, or replaced.

use super::{COPIED, copied};
use crate::ops::{Arithmetic, BuiltIn, Call, Expectation, OpError};
use crate::schema::{Property, Scalar, Schema};

pub(super) fn ops() -> Vec<BuiltIn> {
    vec![transpose(), concat(), pad(), roll(), flip(), masked_fill()]
}

const MOVED: [Property; 4] = [
    Property::PermutationEquivariant,
    Property::BatchInvariant,
    Property::Linear { input: "input" },
    Property::Homogeneous { input: "input", degree: 1 },
];

fn transpose() -> BuiltIn {
    BuiltIn::new(
        Schema::builtin("transpose", "input[...,M,N] -> out[...,N,M]")
            .alias(&["transpose_2d", "matrix_transpose"])
            .describe("The last two dims swapped, written out contiguously.", "out[j,i] = input[i,j]")
            .keywords(&["permute", "swapaxes", "layout", "contiguous"])
            .bounded_by(COPIED)
            .holds(&MOVED)
            .usual_bugs(&[
                "partial tiles at the edge dropped",
                "rows and columns swapped in a stride",
                "right only for square matrices",
            ]),
        |call| {
            let (input, rows, columns) = (call.input("input")?, call.size("M")?, call.size("N")?);
            let matrices = input.chunks_exact((rows * columns).max(1));
            let turned = matrices.flat_map(|matrix| {
                (0..columns).flat_map(move |column| matrix.iter().skip(column).step_by(columns.max(1)))
            });
            Ok(vec![copied(turned.copied())])
        },
    )
}

fn concat() -> BuiltIn {
    BuiltIn::new(
        Schema::builtin("concat", "a[...,K] b[...,L] -> out[...,K+L]")
            .alias(&["cat", "concatenate"])
            .describe("Two tensors side by side along the last dim, `a` first.", "out = [a, b]")
            .help("a", "the first columns")
            .help("b", "the last columns")
            .keywords(&["join", "append", "hstack"])
            .bounded_by(COPIED)
            .holds(&[Property::PermutationEquivariant, Property::BatchInvariant])
            .usual_bugs(&["operands swapped", "offset of the second one off by one", "strides of one taken for both"]),
        |call| {
            let (a, b, first, second) = (call.input("a")?, call.input("b")?, call.size("K")?, call.size("L")?);
            let row = |row: usize| [&a[row * first..][..first], &b[row * second..][..second]].concat();
            Ok(vec![copied((0..call.batch_count()).flat_map(row))])
        },
    )
}

fn pad() -> BuiltIn {
    BuiltIn::new(
        Schema::builtin("pad", "input[...,H] left:int=1 right:int=2 value:float=0.0 -> out[...,left+H+right]")
            .alias(&["constant_pad", "constant_pad_1d"])
            .choices("left", &[Scalar::Int(1), Scalar::Int(0), Scalar::Int(3), Scalar::Int(16)])
            .choices("right", &[Scalar::Int(2), Scalar::Int(0), Scalar::Int(5), Scalar::Int(8)])
            .choices("value", &[Scalar::Float(0.0), Scalar::Float(-1.5), Scalar::Float(0.1)])
            .describe(
                "The last dim widened on both sides by a constant (torch.nn.functional.pad with mode='constant').",
                "out[i] = input[i-left] where 0 <= i-left < H, else value",
            )
            .help("left", "elements put before each row")
            .help("right", "elements put after each row")
            .help("value", "what is put there, rounded to the dtype of the output")
            .keywords(&["padding", "constant", "border"])
            .bounded_by("0; u*|value| where float32 does not have the value")
            .holds(&MOVED[..2])
            .usual_bugs(&["left and right swapped", "padded with zero whatever the value", "shifted by one"]),
        |call| {
            let (input, width) = (call.input("input")?, call.size("H")?);
            let (left, right) = (call.size("left")?, call.size("right")?);
            let value = Arithmetic::of(call).constant(call.float("value")?);
            let mut expectation = Expectation::with_capacity(call.batch_count() * (left + width + right));
            for row in 0..call.batch_count() {
                (0..left).for_each(|_| expectation.push(value.value, value.error));
                input[row * width..][..width].iter().for_each(|x| expectation.push(*x, 0.0));
                (0..right).for_each(|_| expectation.push(value.value, value.error));
            }
            Ok(vec![expectation])
        },
    )
}

fn roll() -> BuiltIn {
    let shifts = [1, -1, 3, -7, 100, 0].map(Scalar::Int);
    BuiltIn::new(
        Schema::builtin("roll", "input[...,H] shifts:int=1 -> out[...,H]")
            .choices("shifts", &shifts)
            .describe(
                "Rows moved along the last dim; what leaves at one end comes in at the other (torch.roll with dims=-1).",
                "out[i] = input[(i - shifts) mod H]",
            )
            .help("shifts", "places moved towards higher indices; negative to lower ones, and any multiple of H too many")
            .keywords(&["rotate", "cyclic", "shift", "circular"])
            .bounded_by(COPIED)
            .holds(&MOVED)
            .usual_bugs(&["direction reversed", "remainder of a negative number", "zeros in place of what wraps round"]),
        |call| {
            let (input, width) = (call.input("input")?, call.size("H")?);
            let shift = call.int("shifts")?.rem_euclid(width.max(1) as i64) as usize;
            let rows = input.chunks_exact(width.max(1));
            Ok(vec![copied(rows.flat_map(|row| [&row[width - shift..], &row[..width - shift]].concat()))])
        },
    )
}

fn flip() -> BuiltIn {
    BuiltIn::new(
        Schema::builtin("flip", "input[...,H] -> out[...,H]")
            .alias(&["reverse"])
            .describe("The last dim in reverse order.", "out[i] = input[H-1-i]")
            .keywords(&["mirror", "fliplr"])
            .bounded_by(COPIED)
            .holds(&MOVED)
            .usual_bugs(&["off by one: H-i", "reversed within tiles only", "middle element of odd rows lost"]),
        |call| {
            let (input, width) = (call.input("input")?, call.size("H")?);
            Ok(vec![copied(input.chunks_exact(width.max(1)).flat_map(|row| row.iter().rev().copied()))])
        },
    )
}

fn masked_fill() -> BuiltIn {
    let values = [0.0, -10000.0, 0.1, -1.5].map(Scalar::Float);
    BuiltIn::new(
        Schema::builtin("masked_fill", "input[...,H] mask:bool[...,H] value:float=0.0 -> out[...,H]")
            .alias(&["masked_fill_"])
            .choices("value", &values)
            .describe(
                "A constant where the mask is true, the input elsewhere; NaN behind the mask is replaced too.",
                "out = value where mask else input",
            )
            .help("mask", "true where the constant goes")
            .help("value", "the constant, rounded to the dtype of the output")
            .keywords(&["where", "select", "mask", "fill"])
            .bounded_by("0; u*|value| where float32 does not have the value")
            .holds(&MOVED[..2])
            .usual_bugs(&["mask inverted", "input multiplied by the mask: NaN stays", "tail left as it was"]),
        masked,
    )
}

fn masked(call: &Call<'_>) -> Result<Vec<Expectation>, OpError> {
    let (input, mask) = (call.input("input")?, call.input("mask")?);
    let value = Arithmetic::of(call).constant(call.float("value")?);
    let mut expectation = Expectation::with_capacity(input.len());
    for (x, masked) in input.iter().zip(mask) {
        let (y, delta) = if *masked != 0.0 { (value.value, value.error) } else { (*x, 0.0) };
        expectation.push(y, delta);
    }
    Ok(vec![expectation])
}
