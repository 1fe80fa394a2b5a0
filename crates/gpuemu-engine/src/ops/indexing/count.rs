//! bincount and one_hot: whole numbers counted and spread out.

use gpuemu_tensor::DType;

use super::copied;
use crate::ops::BuiltIn;
use crate::schema::{Property, Scalar, Schema};

pub(super) fn ops() -> Vec<BuiltIn> {
    vec![bincount(), one_hot()]
}

const BOUND: &str = "0: whole numbers are exact";

fn bincount() -> BuiltIn {
    BuiltIn::new(
        Schema::builtin("bincount", "input:int64[N] in 0..minlength minlength:int=16 -> out:int64[minlength]")
            .dtypes(&[DType::F32])
            .reduces(&["N"])
            .choices("minlength", &[Scalar::Int(16), Scalar::Int(1), Scalar::Int(7), Scalar::Int(64)])
            .describe(
                "How often each number occurs (torch.bincount of numbers below `minlength`, without weights).",
                "out[b] = count(input[i] == b)",
            )
            .help("input", "the numbers that are counted")
            .help("minlength", "how many numbers there are, and the length of the output")
            .keywords(&["histogram", "count", "frequency", "atomic"])
            .bounded_by(BOUND)
            .usual_bugs(&[
                "store in place of an atomic add",
                "counters of a block not cleared",
                "last elements not counted",
                "number off by one bin",
            ]),
        |call| {
            let mut counts = vec![0.0; call.size("minlength")?];
            for number in call.input("input")? {
                if let Some(count) = counts.get_mut(*number as usize) {
                    *count += 1.0;
                }
            }
            Ok(vec![copied(counts)])
        },
    )
}

fn one_hot() -> BuiltIn {
    BuiltIn::new(
        Schema::builtin(
            "one_hot",
            "input:int64[...] in 0..num_classes num_classes:int=10 -> out:int64[...,num_classes]",
        )
        .dtypes(&[DType::F32])
        .choices("num_classes", &[Scalar::Int(10), Scalar::Int(1), Scalar::Int(17)])
        .describe(
            "A row of zeros with a one at the class (torch.nn.functional.one_hot).",
            "out[i,c] = 1 where input[i] == c else 0",
        )
        .help("input", "the class of each entry")
        .help("num_classes", "how many classes there are")
        .keywords(&["class", "indicator", "encode", "label"])
        .bounded_by(BOUND)
        .holds(&[Property::PermutationEquivariant, Property::BatchInvariant])
        .usual_bugs(&["class off by one", "zeros left unwritten", "last rows not written"]),
        |call| {
            let (input, classes) = (call.input("input")?, call.size("num_classes")?);
            let row = |class: &f64| {
                let class = *class;
                (0..classes).map(move |column| if column as f64 == class { 1.0 } else { 0.0 })
            };
            Ok(vec![copied(input.iter().flat_map(row))])
        },
    )
}
