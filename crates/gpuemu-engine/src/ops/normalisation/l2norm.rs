//! l2norm over the last dim.

use crate::case::Strategy;
use crate::ops::normalisation::rmsnorm::normalise;
use crate::ops::{BuiltIn, Call, Expectation, OpError};
use crate::schema::{Property, Schema};

/// The op.
pub(in crate::ops) fn op() -> BuiltIn {
    BuiltIn::new(
        Schema::builtin("l2norm", "input[...,H] eps:float=1e-12 -> out[...,H]")
            .alias(&["l2_normalize"])
            .reduces(&["H"])
            .describe("Rows divided by their Euclidean length.", "x/sqrt(sum(x^2) + eps)")
            .holds(&[Property::PermutationEquivariant, Property::BatchInvariant])
            .amplified_by(&[Strategy::Tiny, Strategy::Regular])
            .usual_bugs(&["square root dropped", "eps inside or outside of the root"]),
        expect,
    )
}

fn expect(call: &Call<'_>) -> Result<Vec<Expectation>, OpError> {
    let (input, width) = (call.input("input")?, call.size("H")?);
    normalise(call, input, width, 1.0, call.float("eps")?, |_| 1.0)
}
