//! mul, mul_ in place, div and reciprocal.

use crate::case::Strategy;
use crate::ops::elementwise::storage::Storage;
use crate::ops::{BuiltIn, Call, ExcuseKind, Expectation, OpError};
use crate::schema::{Property, Schema};

const PROPERTIES: [Property; 4] = [
    Property::PermutationEquivariant,
    Property::BatchInvariant,
    Property::Homogeneous { input: "input", degree: 1 },
    Property::Homogeneous { input: "other", degree: 1 },
];

/// input·other.
pub(in crate::ops) fn multiply_op() -> BuiltIn {
    let schema = product("mul", "input[...] other[...] -> out[...]", "input*other");
    BuiltIn::new(schema.alias(&["multiply", "vector_mul", "hadamard"]), expect_product)
}

/// input·other, written over input.
pub(in crate::ops) fn multiply_in_place_op() -> BuiltIn {
    let schema = product("mul_", "input[...] other[...] -> input[...]", "input = input*other");
    let schema = schema.alias(&["mul_inplace"]).keywords(&["in place"]);
    BuiltIn::new(schema.usual_bugs(&["input read again after it was written"]), expect_product)
}

fn product(name: &str, signature: &str, formula: &str) -> Schema {
    Schema::builtin(name, signature)
        .describe("Products element by element; NaN and infinities as IEEE multiplication has them.", formula)
        .help("other", "a tensor of the same shape")
        .keywords(&["times", "multiplication", "gate", "mask", "pointwise"])
        .bounded_by("u*|y| where the product is not stored as it is computed; 0 where it is, or is exact")
        .holds(&PROPERTIES)
        .amplified_by(&[Strategy::Regular])
        .usual_bugs(&[
            "product accumulated onto what the output held",
            "other read one off",
            "tail elements not masked",
        ])
}

fn expect_product(call: &Call<'_>) -> Result<Vec<Expectation>, OpError> {
    let (input, other) = (call.input("input")?, call.input("other")?);
    let (storage, flush) = (Storage::of(call), call.units.flush);
    let subnormal = |x: f64| x != 0.0 && x.abs() < flush;
    let mut expectation = Expectation::with_capacity(input.len());
    for (a, b) in input.iter().zip(other) {
        let y = a * b;
        let flushed = subnormal(*a) || subnormal(*b);
        if flushed && y.is_infinite() {
            expectation.push_overflow(y, 0.0, NOT_A_NUMBER, "a flushed number times infinity");
        } else {
            expectation.push(y, storage.delta(y, if flushed { y.abs() } else { 0.0 }));
        }
    }
    Ok(vec![expectation])
}

const NOT_A_NUMBER: ExcuseKind = ExcuseKind::Overflow { nan: true, infinite: false, value: None };

/// input/other.
pub(in crate::ops) fn divide_op() -> BuiltIn {
    BuiltIn::new(
        Schema::builtin("div", "input[...] other[...] -> out[...]")
            .alias(&["divide", "true_divide", "vector_div"])
            .describe(
                "Quotients element by element; x/0 is an infinity and 0/0 NaN as in IEEE division. Admits a product with the reciprocal of other, which may overflow, or be flushed for an other above 2^126.",
                "input/other",
            )
            .help("other", "the divisor, a tensor of the same shape")
            .keywords(&["quotient", "ratio", "division", "pointwise"])
            .bounded_by("5u*|y| (fast division), or u*|y|")
            .holds(&[
                Property::PermutationEquivariant,
                Property::BatchInvariant,
                Property::Homogeneous { input: "input", degree: 1 },
                Property::Homogeneous { input: "other", degree: -1 },
            ])
            .amplified_by(&[Strategy::Regular])
            .usual_bugs(&["operands swapped", "eps added to the divisor", "rounded to a whole number"]),
        |call| {
            let (input, other) = (call.input("input")?, call.input("other")?);
            Ok(vec![quotients(call, input.iter().copied().zip(other.iter().copied()))])
        },
    )
}

/// 1/input.
pub(in crate::ops) fn reciprocal_op() -> BuiltIn {
    BuiltIn::new(
        Schema::builtin("reciprocal", "input[...] -> out[...]")
            .alias(&["rcp"])
            .describe(
                "One over each element; an infinity at 0, as in IEEE division. The reciprocal of a number above 2^126 may be flushed, a subnormal one may count as 0.",
                "1/x",
            )
            .keywords(&["division", "inverse", "pointwise"])
            .bounded_by("5u*|y| (fast division), or u*|y|")
            .holds(&[
                Property::PermutationEquivariant,
                Property::BatchInvariant,
                Property::Homogeneous { input: "input", degree: -1 },
            ])
            .amplified_by(&[Strategy::Regular])
            .usual_bugs(&["eps added to the divisor", "sign lost at -0", "zero in place of infinity"]),
        |call| Ok(vec![quotients(call, call.input("input")?.iter().map(|x| (1.0, *x)))]),
    )
}

fn quotients(call: &Call<'_>, pairs: impl Iterator<Item = (f64, f64)>) -> Expectation {
    let (storage, units, fast) = (Storage::of(call), call.units, call.precision.fast_division);
    // The reference of a float64 kernel rounds its quotient too.
    let roundings = units.division * units.u + units.reference;
    let mut expectation = Expectation::default();
    for (a, b) in pairs {
        let y = a / b;
        let small = |x: f64| x != 0.0 && x.abs() < units.tiny;
        // 1/b is below every normal number.
        let huge = fast && b.abs() * units.tiny > 0.99 && b.is_finite();
        let mut delta = if fast { roundings * y.abs() + units.eta + units.flush } else { storage.delta(y, 0.0) };
        if huge || units.flush > 0.0 && small(a) {
            delta += y.abs();
        }
        if small(b) && (fast || units.flush > 0.0) {
            // 1/b is an infinity, of a flushed b for certain; 0 times it is NaN.
            let image = ExcuseKind::Overflow { nan: a.abs() < units.tiny, infinite: true, value: None };
            expectation.push_overflow(y, delta, image, "1/other");
        } else if huge && a.is_infinite() {
            expectation.push_overflow(y, delta, NOT_A_NUMBER, "infinity times a flushed 1/other");
        } else {
            expectation.push(y, delta);
        }
    }
    expectation
}
