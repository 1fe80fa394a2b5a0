//! leaky_relu: x, or slope·x below zero.

use crate::ops::{BuiltIn, Call, Expectation, OpError};
use crate::schema::{Property, Scalar, Schema};

pub(in crate::ops) fn op() -> BuiltIn {
    BuiltIn::new(
        Schema::builtin("leaky_relu", "input[...] negative_slope:float=0.01 -> out[...]")
            .alias(&["lrelu"])
            .choices("negative_slope", &[Scalar::Float(0.01), Scalar::Float(0.01), Scalar::Float(0.2)])
            .describe(
                "Negative elements are multiplied by `negative_slope` (TensorFlow calls it alpha); NaN stays NaN.",
                "x if x > 0 else negative_slope*x",
            )
            .help("negative_slope", "factor of elements at and below 0")
            .holds(&[
                Property::PermutationEquivariant,
                Property::BatchInvariant,
                Property::Homogeneous { input: "input", degree: 1 },
            ])
            .bounded_by("flush where x > 0, else 2*u*|y| + eta + flush")
            .keywords(&["activation", "rectifier", "prelu", "slope"])
            .usual_bugs(&[
                "wrong slope, such as a default in place of the parameter",
                "max(x, slope*x) where the slope is above 1 or below 0",
                "tail elements not masked",
            ]),
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
