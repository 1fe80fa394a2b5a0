//! The wrong kernels that detection is measured with: for each op constants, masks, accumulation,
//! scale and index changed, from gross to subtle.

use gpuemu_tensor::DType;

use crate::mutation::Mutation;

const SCALES: [Mutation; 3] =
    [Mutation::ScaleOutput(1.01), Mutation::ScaleOutput(1.001), Mutation::ScaleOutput(1.0 + 1e-5)];

const REDUCTION: [Mutation; 6] = [
    Mutation::PadZero(128),
    Mutation::PadZero(0),
    Mutation::DropTail(32),
    Mutation::DropTail(128),
    Mutation::SkipElement,
    Mutation::NarrowAccumulator(DType::BF16),
];

/// The mutations of an op's kernels that change values. A missing mask of a flat kernel changes
/// none: it stores out of bounds, which the memory checks see.
pub fn mutants(op: &str) -> Vec<Mutation> {
    let own: &[Mutation] = match op {
        "relu" => &[Mutation::Constant(1.01), Mutation::Constant(0.99)],
        "leaky_relu" => &[Mutation::Constant(10.0), Mutation::Constant(1.01)],
        "elu" => {
            &[Mutation::Constant(1.01), Mutation::Constant(0.5), Mutation::DropFactor, Mutation::ScaleArgument(1.01)]
        }
        "sigmoid" => &[Mutation::ScaleArgument(2.0), Mutation::ScaleArgument(1.01), Mutation::FlipSign],
        "silu" => &[Mutation::ScaleArgument(2.0), Mutation::ScaleArgument(1.01), Mutation::DropFactor],
        "tanh" => &[Mutation::ScaleArgument(2.0), Mutation::ScaleArgument(1.01), Mutation::DropMaximum],
        "gelu" => &[Mutation::DropFactor, Mutation::ScaleArgument(1.01), Mutation::Constant(1.1)],
        "gelu_tanh" => &[Mutation::DropFactor, Mutation::ScaleArgument(1.01), Mutation::Constant(1.1)],
        "swiglu" => &[
            Mutation::SwapOperands,
            Mutation::ScaleArgument(1.702),
            Mutation::ScaleArgument(1.01),
            Mutation::DropFactor,
        ],
        "rope" => &[
            Mutation::Constant(1.1),
            Mutation::Constant(50.0),
            Mutation::OffByOne,
            Mutation::FlipSign,
            Mutation::SwapOperands,
        ],
        "softmax" => &[Mutation::DropMaximum, Mutation::ScaleArgument(1.01), Mutation::DropMask],
        "log_softmax" => {
            &[Mutation::DropMaximum, Mutation::ScaleArgument(1.01), Mutation::DropFactor, Mutation::DropMask]
        }
        "cross_entropy" => &[
            Mutation::DropMaximum,
            Mutation::OffByOne,
            Mutation::DropFactor,
            Mutation::ScaleArgument(1.01),
            Mutation::DropMask,
            Mutation::Named("ignored rows counted"),
            Mutation::Named("smoothing leaves the target out"),
        ],
        "sum" => &[Mutation::DropMask],
        "mean" => &[Mutation::Unbiased, Mutation::DropMask],
        "max" => &[Mutation::Overwrite, Mutation::DropMask],
        "cumsum" => &[Mutation::Overwrite, Mutation::OffByOne, Mutation::Named("the other direction")],
        "layernorm" => &[
            Mutation::DropRoot,
            Mutation::Unbiased,
            Mutation::DropFactor,
            Mutation::Constant(0.1),
            Mutation::Constant(10.0),
            Mutation::EpsOutside,
            Mutation::OnePassVariance,
            Mutation::DropMask,
        ],
        "rmsnorm" => &[
            Mutation::DropRoot,
            Mutation::Unbiased,
            Mutation::Constant(0.1),
            Mutation::Constant(10.0),
            Mutation::EpsOutside,
            Mutation::DropMask,
        ],
        "l2norm" => &[
            Mutation::DropRoot,
            Mutation::Constant(10.0),
            Mutation::EpsOutside,
            Mutation::Named("eps added in place of a minimum"),
            Mutation::DropMask,
        ],
        "matmul" => &[Mutation::Overwrite, Mutation::DropMask],
        "attention" => &[
            Mutation::DropFactor,
            Mutation::DropRescale,
            Mutation::Overwrite,
            Mutation::Constant(1.01),
            Mutation::OffByOne,
            Mutation::SwapOperands,
            Mutation::PadZero(32),
            Mutation::DropTail(32),
            Mutation::DropMask,
        ],
        _ => &[],
    };
    let reduction: &[Mutation] = match op {
        "softmax" | "log_softmax" | "cross_entropy" | "mean" | "layernorm" | "rmsnorm" => &REDUCTION,
        // Zeros change neither a sum, nor a length, nor a prefix.
        "sum" | "l2norm" => &REDUCTION[2..],
        "max" => &REDUCTION[..5],
        "cumsum" => &REDUCTION[4..],
        "matmul" => &[Mutation::DropTail(32), Mutation::SkipElement, Mutation::NarrowAccumulator(DType::BF16)],
        _ => &[],
    };
    own.iter().chain(reduction).chain(&SCALES).copied().collect()
}
