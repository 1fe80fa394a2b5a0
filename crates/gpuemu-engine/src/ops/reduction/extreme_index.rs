//! argmax and argmin along the last dim.

use crate::case::Strategy;
use crate::ops::{BuiltIn, Call, Expectation, OpError};
use crate::schema::{Property, Schema};

pub(in crate::ops) fn largest_op() -> BuiltIn {
    let schema = schema(
        "argmax",
        "argmax(x)",
        "Index of the largest element along the last dim; the first of several, and the first NaN where there is one, as in NumPy and PyTorch.",
    );
    let schema = schema.keywords(&["maximum", "largest", "greedy", "sampling"]);
    BuiltIn::new(schema.usual_bugs(&["starts from 0 in place of -Inf"]), |call| expect(call, |x, most| x > most))
}

pub(in crate::ops) fn smallest_op() -> BuiltIn {
    let schema = schema(
        "argmin",
        "argmin(x)",
        "Index of the smallest element along the last dim; the first of several, and the first NaN where there is one, as in NumPy and PyTorch.",
    );
    let schema = schema.keywords(&["minimum", "smallest", "nearest"]);
    BuiltIn::new(schema.usual_bugs(&["starts from 0 in place of +Inf"]), |call| expect(call, |x, least| x < least))
}

fn schema(name: &str, formula: &str, summary: &str) -> Schema {
    Schema::builtin(name, "input[...,H] -> out:int64[...]")
        .reduces(&["H"])
        .at_least("H", 1)
        .describe(summary, formula)
        .help("out", "indices along the last dim, from 0")
        .keywords(&["index", "extreme", "position"])
        .bounded_by("0: indices are exact; undetermined where flushed subnormals tie")
        .holds(&[
            Property::PermutationEquivariant,
            Property::BatchInvariant,
            Property::Homogeneous { input: "input", degree: 1 },
        ])
        .amplified_by(&[Strategy::Integers, Strategy::Sparse])
        .usual_bugs(&["the last of several in place of the first", "NaN never wins", "index inside its tile"])
}

fn expect(call: &Call<'_>, better: impl Fn(f64, f64) -> bool) -> Result<Vec<Expectation>, OpError> {
    let (input, width) = (call.input("input")?, call.size("H")?);
    let flush = call.units.flush;
    let mut expectation = Expectation::with_capacity(call.batch_count());
    for row in input.chunks_exact(width.max(1)) {
        let mut best = 0;
        for (index, x) in row.iter().enumerate() {
            if row[best].is_nan() {
                break;
            }
            if x.is_nan() || better(*x, row[best]) {
                best = index;
            }
        }
        if row[best].abs() < flush && row.iter().any(|x| *x != 0.0 && x.abs() < flush) {
            expectation.push_undetermined(best as f64, "subnormals that may be flushed and tie");
        } else {
            expectation.push(best as f64, 0.0);
        }
    }
    Ok(vec![expectation])
}
