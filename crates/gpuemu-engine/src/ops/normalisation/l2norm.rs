//! l2norm over the last dim.

use crate::case::Strategy;
use crate::ops::normalisation::rmsnorm::{Guard, divide_by_length};
use crate::ops::{BuiltIn, Call, Expectation, OpError};
use crate::schema::{Property, Scalar, Schema};

pub(in crate::ops) fn op() -> BuiltIn {
    BuiltIn::new(
        Schema::builtin(
            "l2norm",
            "input[...,H] eps:float=1e-12 eps_outside:bool=false eps_is_minimum:bool=false -> out[...,H]",
        )
        .alias(&["l2_normalize"])
        .reduces(&["H"])
        .choices("eps", &[Scalar::Float(1e-12), Scalar::Float(1e-12), Scalar::Float(1e-6)])
        .choices("eps_outside", &[Scalar::Bool(false), Scalar::Bool(true)])
        .choices("eps_is_minimum", &[Scalar::Bool(false), Scalar::Bool(true)])
        .describe(
            "Rows divided by their Euclidean length. `eps` is added to the sum of squares, inside of the root, unless \
             `eps_outside` (of the root) or `eps_is_minimum` (of what it would be added to): both make PyTorch's \
             `normalize`, x/max(sqrt(sum(x^2)), eps), and the second alone TensorFlow's `l2_normalize`, \
             x/sqrt(max(sum(x^2), eps)).",
            "x/sqrt(sum(x^2) + eps)",
        )
        .help("eps", "what keeps the divisor away from 0")
        .help("eps_outside", "whether eps is added to the length, outside of the root, and not to the sum of squares")
        .help("eps_is_minimum", "whether the larger of the two is taken and not their sum")
        .holds(&[Property::PermutationEquivariant, Property::BatchInvariant])
        .amplified_by(&[Strategy::Tiny, Strategy::Regular])
        .bounded_by("|y|*(g + u*(R + Q + 3) + u_mid) and underflow, with F of H terms, q = sum(x^2), \
             g = (1 - u*(F + 2)*q/(q + eps) - u)^(-1/2) - 1, or what an error of u*(F + 2)*q makes of the divisor where eps is \
             outside of the root or a minimum; nothing is said where squares are lost to underflow")
        .keywords(&["normalisation", "euclidean norm", "unit length", "cosine similarity", "normalize"])
        .usual_bugs(&["square root dropped", "eps inside or outside of the root", "eps added in place of a minimum"]),
        expect,
    )
}

fn expect(call: &Call<'_>) -> Result<Vec<Expectation>, OpError> {
    let (input, width) = (call.input("input")?, call.size("H")?);
    let (outside, minimum) = (call.flag("eps_outside"), call.flag("eps_is_minimum"));
    let guard = Guard { eps: call.float("eps")?, outside, minimum };
    divide_by_length(call, input, None, width, 1.0, guard, |_| 1.0)
}
