//! add, sub, bias_add, and add_ in place.

use crate::case::Strategy;
use crate::ops::elementwise::storage::Storage;
use crate::ops::expectation::overflows;
use crate::ops::rounded::ANY_OVERFLOW;
use crate::ops::{Arithmetic, BuiltIn, Call, Expectation, OpError, Rounded};
use crate::schema::{Property, Scalar, Schema};

/// input + alpha·other.
pub(in crate::ops) fn add_op() -> BuiltIn {
    let schema = scaled("add", "input[...] other[...] alpha:float=1.0 -> out[...]", "input + alpha*other");
    BuiltIn::new(schema.alias(&["vector_add", "residual_add"]), |call| combine(call, 1.0))
}

/// input − alpha·other.
pub(in crate::ops) fn subtract_op() -> BuiltIn {
    let schema = scaled("sub", "input[...] other[...] alpha:float=1.0 -> out[...]", "input - alpha*other");
    BuiltIn::new(schema.alias(&["subtract", "vector_sub"]), |call| combine(call, -1.0))
}

/// input + alpha·other, written over input.
pub(in crate::ops) fn add_in_place_op() -> BuiltIn {
    let schema = scaled("add_", "input[...] other[...] alpha:float=1.0 -> input[...]", "input = input + alpha*other");
    let schema = schema.alias(&["add_inplace"]).keywords(&["in place", "accumulate", "axpy"]);
    BuiltIn::new(schema.usual_bugs(&["input read again after it was written"]), |call| combine(call, 1.0))
}

/// input + bias.
pub(in crate::ops) fn bias_op() -> BuiltIn {
    BuiltIn::new(
        Schema::builtin("bias_add", "input[...,H] bias[H] -> out[...,H]")
            .alias(&["add_bias"])
            .describe("A bias added to every row; NaN and infinities as IEEE addition has them.", "input + bias")
            .help("bias", "one number for each column, the same for all rows")
            .keywords(&["broadcast", "row", "addition", "pointwise"])
            .bounded_by(BOUND)
            .holds(&[Property::PermutationEquivariant, Property::BatchInvariant])
            .amplified_by(&[Strategy::Mixed])
            .usual_bugs(&["bias indexed by row", "bias index not wrapped at the row's end", "bias added twice"]),
        expect_bias,
    )
}

const BOUND: &str = "u*|y| where the sum is not stored as it is computed; 0 where it is, or is exact";

fn scaled(name: &str, signature: &str, formula: &str) -> Schema {
    Schema::builtin(name, signature)
        .describe(
            "One tensor and a multiple of another of its shape; NaN and infinities as IEEE arithmetic has them, with or without a fused multiply-add.",
            formula,
        )
        .help("other", "a tensor of the same shape, scaled by alpha")
        .help("alpha", "the factor on other, as in torch.add and torch.sub")
        .choices("alpha", &[1.0, 0.5, -2.0, 0.1].map(Scalar::Float))
        .keywords(&["plus", "minus", "addition", "subtraction", "residual", "pointwise"])
        .bounded_by("u*(2*|alpha*other| + |y|): alpha, its product and the sum are rounded; without the last term where the sum is stored as it is computed, 0 where alpha is 1")
        .holds(&[Property::PermutationEquivariant, Property::BatchInvariant])
        .amplified_by(&[Strategy::Regular, Strategy::Mixed])
        .usual_bugs(&["alpha ignored", "alpha on the wrong operand", "operands swapped", "tail elements not masked"])
}

fn combine(call: &Call<'_>, sign: f64) -> Result<Vec<Expectation>, OpError> {
    let (input, other, alpha) = (call.input("input")?, call.input("other")?, call.float("alpha")?);
    let (arithmetic, storage, units) = (Arithmetic::of(call), Storage::of(call), call.units);
    let factor = Rounded { value: sign * alpha, ..arithmetic.constant(alpha) };
    // A power of two moves the exponent alone.
    let shifts = power_of_two(alpha);
    let mut expectation = Expectation::with_capacity(input.len());
    for (a, b) in input.iter().zip(other) {
        let product = factor.value * b;
        let exact = shifts && units.mid == 0.0 && (*b == 0.0 || product.abs() >= units.tiny);
        let carried = if exact || alpha.abs() == 1.0 {
            0.0
        } else {
            arithmetic.intermediate(arithmetic.multiply(factor, Rounded::exact(*b))).error
        };
        let y = a + product;
        let delta = storage.delta(y, carried) + (1.0 + alpha.abs()) * units.flush;
        if product.is_finite() && alpha.abs() != 1.0 && overflows(product.abs(), units.max.min(units.mid_max)) {
            expectation.push_overflow(y, delta, ANY_OVERFLOW, "alpha*other");
        } else {
            expectation.push(y, delta);
        }
    }
    Ok(vec![expectation])
}

/// Whether a product with this is exact, underflow aside.
pub(in crate::ops) fn power_of_two(value: f64) -> bool {
    value.is_normal() && value.to_bits() & ((1 << 52) - 1) == 0
}

fn expect_bias(call: &Call<'_>) -> Result<Vec<Expectation>, OpError> {
    let (input, bias, storage) = (call.input("input")?, call.input("bias")?, Storage::of(call));
    let mut expectation = Expectation::with_capacity(input.len());
    for row in input.chunks_exact(bias.len().max(1)) {
        for (x, b) in row.iter().zip(bias) {
            let y = x + b;
            expectation.push(y, storage.delta(y, 0.0) + 2.0 * call.units.flush);
        }
    }
    Ok(vec![expectation])
}
