//! embedding, gather and index_select: elements and rows read at given indices.

use super::{COPIED, copied};
use crate::ops::{BuiltIn, Call, Expectation, OpError};
use crate::schema::{Property, Scalar, Schema};

pub(super) fn ops() -> Vec<BuiltIn> {
    vec![embedding(), gather(), index_select()]
}

fn embedding() -> BuiltIn {
    BuiltIn::new(
        Schema::builtin("embedding", "indices:int64[...] in 0..V weight[V,D] padding_idx:int=-1 -> out[...,D]")
            .alias(&["embedding_lookup"])
            .at_least("V", 1)
            .choices("padding_idx", &[Scalar::Int(-1), Scalar::Int(0)])
            .describe(
                "Rows of a table by index; `padding_idx` matters to the gradient alone and leaves the forward as it is.",
                "out[i] = weight[indices[i]]",
            )
            .help("indices", "which row of `weight` each entry takes")
            .help("weight", "the table, one row for each index")
            .help("padding_idx", "the index whose row gets no gradient, -1 for none; the forward reads it as any other")
            .keywords(&["lookup", "table", "token", "vocabulary", "gather rows"])
            .bounded_by(COPIED)
            .holds(&[
                Property::PermutationEquivariant,
                Property::BatchInvariant,
                Property::Linear { input: "weight" },
                Property::Homogeneous { input: "weight", degree: 1 },
            ])
            .usual_bugs(&[
                "row of the padding index zeroed in the forward",
                "stride of the table taken as its width",
                "index kept in 32 bits times the width",
                "tail of the width not copied",
            ]),
        |call| rows(call, "weight", "indices", "V", "D"),
    )
}

fn gather() -> BuiltIn {
    BuiltIn::new(
        Schema::builtin("gather", "input[M,N] index:int64[M,K] in 0..N -> out[M,K]")
            .alias(&["take_along_axis", "take_along_dim"])
            .at_least("N", 1)
            .describe(
                "One element of its own row for each index (torch.gather with dim=1).",
                "out[i,j] = input[i,index[i,j]]",
            )
            .help("index", "the column that each element of the output is read from")
            .keywords(&["index", "pick", "lookup", "advanced indexing"])
            .bounded_by(COPIED)
            .holds(&[Property::Linear { input: "input" }, Property::Homogeneous { input: "input", degree: 1 }])
            .usual_bugs(&[
                "row of the index in place of the row of the input as stride",
                "index off by one",
                "gathered along the other dim",
                "last columns not written",
            ]),
        expect_gather,
    )
}

fn index_select() -> BuiltIn {
    BuiltIn::new(
        Schema::builtin("index_select", "input[M,N] index:int64[K] in 0..M -> out[K,N]")
            .alias(&["take_rows"])
            .at_least("M", 1)
            .describe(
                "Whole rows by index, in the order of the indices (torch.index_select with dim=0).",
                "out[i] = input[index[i]]",
            )
            .help("index", "the row that each row of the output is a copy of; a row may be taken several times")
            .keywords(&["take", "rows", "gather", "lookup"])
            .bounded_by(COPIED)
            .holds(&[Property::Linear { input: "input" }, Property::Homogeneous { input: "input", degree: 1 }])
            .usual_bugs(&["index off by one", "row stride ignored", "last columns of a row not copied"]),
        |call| rows(call, "input", "index", "M", "N"),
    )
}

/// Rows of a table of `height` by `width`, in the order of the indices.
fn rows(call: &Call<'_>, table: &str, index: &str, height: &str, width: &str) -> Result<Vec<Expectation>, OpError> {
    let (table, index) = (call.input(table)?, call.input(index)?);
    let (height, width) = (call.size(height)?, call.size(width)?);
    if height == 0 || width == 0 {
        return Ok(vec![Expectation::default()]);
    }
    let chosen = index.iter().flat_map(|row| &table[*row as usize * width..][..width]);
    Ok(vec![copied(chosen.copied())])
}

fn expect_gather(call: &Call<'_>) -> Result<Vec<Expectation>, OpError> {
    let (input, index) = (call.input("input")?, call.input("index")?);
    let (width, taken) = (call.size("N")?, call.size("K")?);
    let rows = input.chunks_exact(width.max(1)).zip(index.chunks_exact(taken.max(1)));
    let chosen = rows.flat_map(|(row, index)| index.iter().map(|column| row[*column as usize]));
    Ok(vec![copied(chosen)])
}
