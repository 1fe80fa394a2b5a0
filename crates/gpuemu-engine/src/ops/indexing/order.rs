//! sort and topk along the last dim, with the indices that the elements had.

use std::cmp::Ordering;

use crate::ops::{BuiltIn, Call, Expectation, OpError};
use crate::schema::{Property, Scalar, Schema};

pub(super) fn ops() -> Vec<BuiltIn> {
    vec![sort(), argsort(), topk()]
}

const ROWS: [Property; 2] = [Property::PermutationEquivariant, Property::BatchInvariant];
const BOTH: [Scalar; 2] = [Scalar::Bool(true), Scalar::Bool(false)];
const BOUND: &str = "0: the values are copied; an index among equal values is free where stable is false, and among zeros of either sign may follow either order of them";

fn sort() -> BuiltIn {
    BuiltIn::new(
        ordered(Schema::builtin(
            "sort",
            "input[...,H] descending:bool=false stable:bool=false -> values[...,H] indices:int64[...,H]",
        ))
        .describe(
            "The last dim in order, and where each element was; NaN counts as the largest. Where `stable`, equal elements keep their order, ascending or descending; else their indices may come in any.",
            "values = sorted(x), values[i] = x[indices[i]]",
        ),
        |call| {
            let width = call.size("H")?;
            let (values, indices) = expect(call, width, call.flag("descending"))?;
            Ok(vec![values, indices])
        },
    )
}

fn argsort() -> BuiltIn {
    BuiltIn::new(
        ordered(Schema::builtin(
            "argsort",
            "input[...,H] descending:bool=false stable:bool=false -> indices:int64[...,H]",
        ))
        .describe(
            "The indices that put the last dim in order; NaN counts as the largest. Where `stable`, equal elements keep their order, ascending or descending; else their indices may come in any.",
            "x[indices[i]] <= x[indices[i+1]]",
        ),
        |call| {
            let width = call.size("H")?;
            Ok(vec![expect(call, width, call.flag("descending"))?.1])
        },
    )
}

fn ordered(schema: Schema) -> Schema {
    schema
        .reduces(&["H"])
        .choices("descending", &BOTH)
        .choices("stable", &BOTH)
        .help("descending", "largest first")
        .help("stable", "whether elements that are equal keep their order; torch.sort promises it only where asked")
        .help("indices", "where in the row of the input each element was")
        .keywords(&["order", "rank", "bitonic", "radix"])
        .bounded_by(BOUND)
        .holds(&ROWS)
        .usual_bugs(&[
            "padding of a row sorted into it",
            "NaN compared as less than everything, or left where it was",
            "equal elements reversed where descending",
            "indices of a tile without its offset",
        ])
}

fn topk() -> BuiltIn {
    BuiltIn::new(
        Schema::builtin(
            "topk",
            "input[...,H] k:int=4 largest:bool=true stable:bool=false -> values[...,k] indices:int64[...,k]",
        )
        .alias(&["top_k"])
        .reduces(&["H"])
        .at_least("H", 8)
        .choices("k", &[Scalar::Int(4), Scalar::Int(1), Scalar::Int(2), Scalar::Int(8)])
        .choices("largest", &BOTH)
        .choices("stable", &BOTH)
        .describe(
            "The k largest or smallest elements along the last dim in order, the most extreme first, and where they were; NaN counts as the largest. Where `stable`, the lower of the indices of equal elements comes first; else they may come in any order, and any of them.",
            "values = sorted(x)[:k], values[i] = x[indices[i]]",
        )
        .help("k", "how many are taken; at most H")
        .help("largest", "whether the largest are taken, largest first, or the smallest, smallest first")
        .help("stable", "whether the lower index comes first among equal elements, as jax.lax.top_k has it and torch.topk does not promise")
        .help("indices", "where in the row of the input each element was")
        .keywords(&["select", "largest", "beam", "sampling", "order"])
        .bounded_by(BOUND)
        .holds(&ROWS)
        .usual_bugs(&[
            "padding of the last tile wins over negative rows",
            "the same element taken twice among equal ones",
            "indices of a tile without its offset",
            "NaN lost by a comparison",
        ]),
        |call| {
            // No more than there are: the shapes of generated cases see to it, those of given ones may not.
            let (values, indices) = expect(call, call.size("k")?, call.flag("largest"))?;
            Ok(vec![values, indices])
        },
    )
}

/// The first `taken` of each row in order: the values, and their indices.
fn expect(call: &Call<'_>, taken: usize, descending: bool) -> Result<(Expectation, Expectation), OpError> {
    let (input, width) = (call.input("input")?, call.size("H")?);
    let stable = call.flag("stable");
    let mut values = Expectation::with_capacity(call.batch_count() * taken);
    let mut indices = Expectation::with_capacity(call.batch_count() * taken);
    for row in input.chunks_exact(width.max(1)) {
        let order = ranking(row, descending, compare);
        let negative_zero = row.iter().any(|x| *x == 0.0 && x.is_sign_negative());
        // A radix sort has -0 below 0, a comparison has them equal.
        let by_sign = if negative_zero { ranking(row, descending, compare_signs) } else { order.clone() };
        for (place, index) in order.iter().enumerate().take(taken) {
            values.push(row[*index], 0.0);
            let chosen = *index as f64;
            // Equal elements stand side by side.
            let equal = |other: &&usize| compare(row[*index], row[**other]).is_eq();
            let before = order[..place].iter().rev().take_while(equal).take(2);
            let mut alike = before.chain(order[place + 1..].iter().take_while(equal).take(2));
            if let Some(other) = alike.next().filter(|_| !stable) {
                match alike.next() {
                    None => indices.push_either(chosen, *other as f64, "index of one of two equal elements"),
                    Some(_) => indices.push_undetermined(chosen, "index among equal elements"),
                }
            } else if by_sign[place] != *index {
                indices.push_either(chosen, by_sign[place] as f64, "index among zeros of either sign");
            } else {
                indices.push(chosen, 0.0);
            }
        }
    }
    Ok((values, indices))
}

/// The indices of a row in order; the lower one first among equals.
pub(in crate::ops) fn ranking(row: &[f64], descending: bool, compare: fn(f64, f64) -> Ordering) -> Vec<usize> {
    let mut order: Vec<usize> = (0..row.len()).collect();
    order.sort_by(|left, right| {
        let ascending = compare(row[*left], row[*right]);
        if descending { ascending.reverse() } else { ascending }
    });
    order
}

/// The order of numbers, NaN above all of them.
pub(in crate::ops) fn compare(left: f64, right: f64) -> Ordering {
    left.partial_cmp(&right).unwrap_or_else(|| left.is_nan().cmp(&right.is_nan()))
}

/// The same with -0 below 0.
fn compare_signs(left: f64, right: f64) -> Ordering {
    let zeros = left == 0.0 && right == 0.0;
    if zeros { right.is_sign_negative().cmp(&left.is_sign_negative()) } else { compare(left, right) }
}
