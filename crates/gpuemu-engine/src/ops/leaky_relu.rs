//! leaky_relu: x, or slope·x below zero.

use super::{Call, Expectation, Op, OpError};
use crate::schema::{Property, Schema};

/// leaky_relu.
pub struct LeakyRelu(Schema);

impl LeakyRelu {
    pub(super) fn new() -> Self {
        Self(
            Schema::builtin("leaky_relu", "input[...] negative_slope:float=0.01 -> out[...]")
                .describe("Negative elements are scaled.", "x if x > 0 else negative_slope*x")
                .holds(&[
                    Property::PermutationEquivariant,
                    Property::BatchInvariant,
                    Property::Homogeneous { input: "input", degree: 1 },
                ])
                .usual_bugs(&["wrong slope"]),
        )
    }
}

impl Op for LeakyRelu {
    fn schema(&self) -> &Schema {
        &self.0
    }

    fn expect(&self, call: &Call<'_>) -> Result<Vec<Expectation>, OpError> {
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
}
