//! The ways in which kernels are wrong.

use gpuemu_tensor::DType;

/// One change that makes a kernel wrong.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Mutation {
    /// The result is multiplied by this.
    ScaleOutput(f64),
    /// The op's own constant (eps, slope, alpha, cubic term, scale, base) is multiplied by this.
    Constant(f64),
    /// Rows are padded with zeros to a multiple of this (0: the next power of two), and the padding
    /// takes part in the reduction.
    PadZero(usize),
    /// The last, partial tile of this size takes no part in the reduction.
    DropTail(usize),
    /// Loads or stores are not masked at the edge.
    DropMask,
    /// A square root is missing.
    DropRoot,
    /// A factor or addend of the formula is missing (the 0.5 of gelu, the 1/√D of attention, the −1 of elu).
    DropFactor,
    /// The argument of the inner function is multiplied by this.
    ScaleArgument(f64),
    /// An accumulator is overwritten in place of added to: `acc =` for `acc +=`.
    Overwrite,
    /// The accumulator is not rescaled when the running maximum moves.
    DropRescale,
    /// One element in the middle takes no part in the reduction.
    SkipElement,
    /// An index is one off.
    OffByOne,
    /// The maximum is not subtracted before exp.
    DropMaximum,
    /// n − 1 in place of n.
    Unbiased,
    /// eps added outside of the root.
    EpsOutside,
    /// E[x²] − E[x]² without being declared.
    OnePassVariance,
    /// Running sums in this dtype without being declared.
    NarrowAccumulator(DType),
    SwapOperands,
    /// The sign of one term flipped.
    FlipSign,
    /// Something that only kernels of one op can do wrong, in words.
    Named(&'static str),
}

/// Questions that kernels ask of an optional mutation.
pub trait Mutated {
    fn is(&self, mutation: Mutation) -> bool;
    /// Whether it is this one of the op's own.
    fn named(&self, name: &str) -> bool;
    /// The factor on the op's constant.
    fn constant(&self) -> f64;
    /// The factor on the argument.
    fn argument(&self) -> f64;
    /// The factor on the result.
    fn output(&self) -> f64;
}

impl Mutated for Option<Mutation> {
    fn is(&self, mutation: Mutation) -> bool {
        *self == Some(mutation)
    }
    fn named(&self, name: &str) -> bool {
        matches!(self, Some(Mutation::Named(own)) if *own == name)
    }
    fn constant(&self) -> f64 {
        if let Some(Mutation::Constant(factor)) = self { *factor } else { 1.0 }
    }
    fn argument(&self) -> f64 {
        if let Some(Mutation::ScaleArgument(factor)) = self { *factor } else { 1.0 }
    }
    fn output(&self) -> f64 {
        if let Some(Mutation::ScaleOutput(factor)) = self { *factor } else { 1.0 }
    }
}
