//! dropout with a given mask.

use crate::case::Strategy;
use crate::ops::elementwise::storage::Storage;
use crate::ops::elementwise::sums::power_of_two;
use crate::ops::{Arithmetic, BuiltIn, Call, ExcuseKind, Expectation, OpError};
use crate::schema::{Property, Scalar, Schema};

pub(in crate::ops) fn op() -> BuiltIn {
    BuiltIn::new(
        Schema::builtin("dropout", "input[...] mask:bool[...] p:float=0.5 -> out[...]")
            .alias(&["masked_dropout"])
            .choices("p", &[0.5, 0.1, 0.0, 0.75].map(Scalar::Float))
            .describe(
                "Inverted dropout with a given mask: kept elements are divided by 1 - p, the others are 0. A dropped NaN or infinity gives 0 or NaN (a select, or a product with the mask).",
                "input*mask/(1 - p)",
            )
            .help("mask", "true keeps an element, false drops it")
            .help("p", "the probability of being dropped, below 1: kept elements are divided by 1 - p")
            .keywords(&["mask", "regularisation", "inverted dropout", "pointwise"])
            .bounded_by("u*|y|*(1/(1 - p) + 6); 0 where 1 - p is a power of two")
            .holds(&[
                Property::PermutationEquivariant,
                Property::BatchInvariant,
                Property::Homogeneous { input: "input", degree: 1 },
            ])
            .amplified_by(&[Strategy::Regular])
            .usual_bugs(&["mask inverted", "kept elements not scaled", "scaled by 1/p", "mask read one off"]),
        expect,
    )
}

const DROPPED: ExcuseKind = ExcuseKind::Overflow { nan: true, infinite: false, value: Some(0.0) };

fn expect(call: &Call<'_>) -> Result<Vec<Expectation>, OpError> {
    let (input, mask, p) = (call.input("input")?, call.input("mask")?, call.float("p")?);
    let (storage, units) = (Storage::of(call), Arithmetic::of(call).units);
    let share = 1.0 - p;
    // p, 1 − p, its reciprocal and the product are rounded; none of them for a power of two.
    let relative = if power_of_two(share) { 0.0 } else { units.u * (1.0 / share + units.division + 1.0) };
    let mut expectation = Expectation::with_capacity(input.len());
    for (x, kept) in input.iter().zip(mask) {
        if *kept == 0.0 && !x.is_finite() {
            expectation.push_overflow(0.0, 0.0, DROPPED, "a dropped NaN or infinity times 0");
        } else if *kept == 0.0 {
            expectation.push(0.0, 0.0);
        } else {
            let y = x / share;
            let delta = if relative == 0.0 { storage.delta(y, 0.0) } else { relative * y.abs() + units.eta };
            expectation.push(y, delta + units.flush * (1.0 + 1.0 / share));
        }
    }
    Ok(vec![expectation])
}
