//! any and all along the last dim.

use crate::ops::{BuiltIn, Call, Expectation, OpError};
use crate::schema::{Property, Schema};

pub(in crate::ops) fn any_op() -> BuiltIn {
    let schema = schema("any", "or(x)", "Whether some element along the last dim is true; false where there is none.");
    let schema = schema.alias(&["reduce_or"]).keywords(&["or", "exists", "disjunction"]);
    BuiltIn::new(schema.usual_bugs(&["garbage beyond the row counts"]), |call| {
        expect(call, |row| row.iter().any(|flag| *flag != 0.0))
    })
}

pub(in crate::ops) fn all_op() -> BuiltIn {
    let schema = schema("all", "and(x)", "Whether every element along the last dim is true; true where there is none.");
    let schema = schema.alias(&["reduce_and"]).keywords(&["and", "every", "conjunction"]);
    BuiltIn::new(schema.usual_bugs(&["padding of zeros counts"]), |call| {
        expect(call, |row| row.iter().all(|flag| *flag != 0.0))
    })
}

fn schema(name: &str, formula: &str, summary: &str) -> Schema {
    Schema::builtin(name, "input:bool[...,H] -> out:bool[...]")
        .reduces(&["H"])
        .describe(summary, formula)
        .keywords(&["boolean", "logical", "vote", "predicate"])
        .bounded_by("0: flags are exact")
        .holds(&[Property::PermutationEquivariant, Property::BatchInvariant])
        .usual_bugs(&["tail elements dropped", "any and all mixed up", "wrong for a row without elements"])
}

fn expect(call: &Call<'_>, holds: impl Fn(&[f64]) -> bool) -> Result<Vec<Expectation>, OpError> {
    let (input, width) = (call.input("input")?, call.size("H")?);
    let mut expectation = Expectation::with_capacity(call.batch_count());
    for row in 0..call.batch_count() {
        let flags = input.get(row * width..(row + 1) * width).unwrap_or_default();
        expectation.push(f64::from(u8::from(holds(flags))), 0.0);
    }
    Ok(vec![expectation])
}
