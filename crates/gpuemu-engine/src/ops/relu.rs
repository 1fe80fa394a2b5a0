//! relu: max(x, 0).

use super::{Call, Expectation, Op, OpError};
use crate::schema::{Property, Schema};

/// relu.
pub struct Relu(Schema);

impl Relu {
    pub(super) fn new() -> Self {
        Self(
            Schema::builtin("relu", "input[...] -> out[...]")
                .describe("Negative elements become zero.", "max(x, 0)")
                .holds(&[
                    Property::PermutationEquivariant,
                    Property::BatchInvariant,
                    Property::Homogeneous { input: "input", degree: 1 },
                ])
                .usual_bugs(&["threshold other than zero", "tail elements not masked"]),
        )
    }
}

impl Op for Relu {
    fn schema(&self) -> &Schema {
        &self.0
    }

    fn expect(&self, call: &Call<'_>) -> Result<Vec<Expectation>, OpError> {
        let flush = call.units.flush;
        call.elementwise("input", |x| (if x.is_nan() || x > 0.0 { x } else { 0.0 }, flush))
    }
}
