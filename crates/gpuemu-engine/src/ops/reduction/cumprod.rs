//! cumprod along the last dim.

use crate::case::Strategy;
use crate::ops::reduction::prod::{BOUND, Product};
use crate::ops::{BuiltIn, Call, Expectation, OpError};
use crate::schema::{Property, Schema};

pub(in crate::ops) fn op() -> BuiltIn {
    BuiltIn::new(
        Schema::builtin("cumprod", "input[...,H] -> out[...,H]")
            .alias(&["prefix_product", "cumulative_product"])
            .reduces(&["H"])
            .describe(
                "Running product along the last dim, the element itself included. NaN from the first NaN on, or where 0 and an infinity have met.",
                "out[i] = prod(x[0..=i])",
            )
            .keywords(&["scan", "prefix", "product"])
            .bounded_by(BOUND)
            .holds(&[Property::PermutationEquivariant, Property::BatchInvariant])
            .amplified_by(&[Strategy::Integers, Strategy::Regular])
            .usual_bugs(&["carry between tiles dropped", "exclusive in place of inclusive", "starts from 0 in place of 1"]),
        expect,
    )
}

fn expect(call: &Call<'_>) -> Result<Vec<Expectation>, OpError> {
    let (input, width) = (call.input("input")?, call.size("H")?);
    let mut expectation = Expectation::with_capacity(input.len());
    for row in input.chunks_exact(width.max(1)) {
        let mut product = Product::of_nothing();
        for x in row {
            product.include(*x);
            product.push_to(&mut expectation, call)?;
        }
    }
    Ok(vec![expectation])
}
