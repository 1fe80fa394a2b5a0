//! leaky_relu: x, or slope·x below zero.

use crate::ops::{BuiltIn, Call, Expectation, OpError};
use crate::schema::{Property, Schema};

/// The op.
pub(in crate::ops) fn op() -> BuiltIn {
    BuiltIn::new(
        Schema::builtin("leaky_relu", "input[...] negative_slope:float=0.01 -> out[...]")
            .describe("Negative elements are scaled.", "x if x > 0 else negative_slope*x")
            .holds(&[
                Property::PermutationEquivariant,
                Property::BatchInvariant,
                Property::Homogeneous { input: "input", degree: 1 },
            ])
            .usual_bugs(&["wrong slope"]),
        expect,
    )
}

fn expect(call: &Call<'_>) -> Result<Vec<Expectation>, OpError> {
    let slope = call.float("negative_slope")?;
    let units = call.units;
    call.elementwise("input", |x| {
        if x.is_nan() || x > 0.0 {
            return (x, units.flush);
        }
        // The slope itself is rounded to the accumulator, then the product is.
        let y = slope * x;
        (y, 2.0 * units.u * y.abs() + units.eta + units.flush)
    })
}
