//! scatter and index_copy: elements and rows written in place at distinct indices.

use super::{COPIED, copied};
use crate::ops::{BuiltIn, Call, Expectation, OpError};
use crate::schema::{Property, Schema};

pub(super) fn ops() -> Vec<BuiltIn> {
    vec![scatter(), index_copy()]
}

fn scatter() -> BuiltIn {
    BuiltIn::new(
        Schema::builtin("scatter", "input[M,K+L] index:int64[M,K] in permutation(K+L) src[M,K] -> input[M,K+L]")
            .alias(&["scatter_"])
            .describe(
                "Elements written in place at columns of their own row (torch.scatter_ with dim=1); the columns of a row are distinct, and elements that no index names stay as they were.",
                "input[i,index[i,j]] = src[i,j]",
            )
            .help("input", "written in place")
            .help("index", "the column that each element of `src` is written to, distinct within a row")
            .help("src", "what is written")
            .keywords(&["put", "in place", "advanced indexing", "put_along_axis"])
            .bounded_by(COPIED)
            .holds(&[Property::Linear { input: "src" }])
            .usual_bugs(&[
                "elements that no index names cleared",
                "scattered along the other dim",
                "gather in place of scatter: index applied to the source",
                "last indices of a row ignored",
            ]),
        |call| {
            let (columns, written) = (call.size("K")? + call.size("L")?, call.size("K")?);
            let (mut values, index, src) = (call.input("input")?.to_vec(), call.input("index")?, call.input("src")?);
            for (place, (column, value)) in index.iter().zip(src).enumerate() {
                values[place / written.max(1) * columns + *column as usize] = *value;
            }
            Ok(vec![copied(values)])
        },
    )
}

fn index_copy() -> BuiltIn {
    BuiltIn::new(
        Schema::builtin("index_copy", "input[K+L,N] index:int64[K] in permutation(K+L) source[K,N] -> input[K+L,N]")
            .alias(&["index_copy_"])
            .describe(
                "Rows written in place (torch.index_copy_ with dim=0); the indices are distinct, and rows that no index names stay as they were.",
                "input[index[i]] = source[i]",
            )
            .help("input", "written in place")
            .help("index", "the row that each row of `source` is written to, all distinct")
            .help("source", "what is written")
            .keywords(&["rows", "in place", "cache update", "scatter rows"])
            .bounded_by(COPIED)
            .holds(&[Property::Linear { input: "source" }])
            .usual_bugs(&["other rows cleared", "index applied to the source", "last columns of a row not written"]),
        expect_index_copy,
    )
}

fn expect_index_copy(call: &Call<'_>) -> Result<Vec<Expectation>, OpError> {
    let (index, source, width) = (call.input("index")?, call.input("source")?, call.size("N")?);
    let mut values = call.input("input")?.to_vec();
    for (row, source) in index.iter().zip(source.chunks_exact(width.max(1))) {
        values[*row as usize * width..][..width].copy_from_slice(source);
    }
    Ok(vec![copied(values)])
}
