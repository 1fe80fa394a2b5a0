//! Many products of matrices at once: a batch of equal shapes, and groups of rows with a matrix each.

use super::product::{Products, push_products};
use crate::case::Strategy;
use crate::ops::{BuiltIn, Call, Expectation, OpError};
use crate::schema::{Property, Schema};

const BOUND: &str = "u*F(K)*sum_k |a||b|, F(K) = K or the depth of the declared order; 0 where every partial sum of \
    small whole numbers is exact";
pub(in crate::ops) fn bmm() -> BuiltIn {
    BuiltIn::new(
        described(Schema::builtin("bmm", "a[B,M,K] b[B,K,N] -> out[B,M,N]"))
            .alias(&["batched_matmul", "batch_matmul", "batched_gemm"])
            .describe("Matrix product of each pair of a batch.", "out[n,i,j] = sum_k a[n,i,k]*b[n,k,j]")
            .at_most("B", 64)
            .usual_bugs(&[
                "batch stride of one operand used for the other",
                "K tail not masked",
                "accumulator overwritten",
            ]),
        expect_bmm,
    )
}

pub(in crate::ops) fn grouped() -> BuiltIn {
    BuiltIn::new(
        described(Schema::builtin("grouped_matmul", "a[T,K] b[E,K,N] offsets:int32[E+1] in offsets(T) -> out[T,N]"))
            .alias(&["grouped_gemm", "grouped_mm", "moe_matmul"])
            .describe(
                "Rows offsets[e] to offsets[e+1] of a times the matrix b[e]: tokens sorted by expert. Groups may be \
            empty.",
                "out[t,j] = sum_k a[t,k]*b[e,k,j] for offsets[e] <= t < offsets[e+1]",
            )
            .help("offsets", "where each group's rows begin, from 0 to T: one more number than there are groups")
            .keywords(&["mixture of experts", "ragged", "segment", "expert"])
            .at_least("E", 1)
            .at_most("E", 16)
            .usual_bugs(&[
                "tile of rows that straddles two groups uses one matrix",
                "empty group not skipped",
                "rows of the last group dropped",
            ]),
        expect_grouped,
    )
}

fn described(schema: Schema) -> Schema {
    schema
        .reduces(&["K"])
        .keywords(&["gemm", "matrix product", "batch"])
        .bounded_by(BOUND)
        .holds(&[
            Property::Linear { input: "a" },
            Property::Linear { input: "b" },
            Property::Homogeneous { input: "a", degree: 1 },
            Property::Homogeneous { input: "b", degree: 1 },
        ])
        .amplified_by(&[Strategy::Integers, Strategy::Regular])
}

fn expect_bmm(call: &Call<'_>) -> Result<Vec<Expectation>, OpError> {
    let (a, b) = (call.input("a")?, call.input("b")?);
    let (batch, rows, inner, columns) = (call.size("B")?, call.size("M")?, call.size("K")?, call.size("N")?);
    let mut expectation = Expectation::with_capacity(batch * rows * columns);
    for entry in 0..batch {
        let left = &a[entry * rows * inner..][..rows * inner];
        let right = &b[entry * inner * columns..][..inner * columns];
        push_products(call, &mut expectation, Products::of(call, left, right, rows, inner, columns))?;
    }
    Ok(vec![expectation])
}

fn expect_grouped(call: &Call<'_>) -> Result<Vec<Expectation>, OpError> {
    let (a, b, offsets) = (call.input("a")?, call.input("b")?, call.input("offsets")?);
    let (inner, columns) = (call.size("K")?, call.size("N")?);
    let mut expectation = Expectation::with_capacity(call.size("T")? * columns);
    for (group, ends) in offsets.windows(2).enumerate() {
        let (start, end) = (ends[0] as usize, ends[1] as usize);
        let left = &a[start * inner..end * inner];
        let right = &b[group * inner * columns..][..inner * columns];
        push_products(call, &mut expectation, Products::of(call, left, right, end - start, inner, columns))?;
    }
    Ok(vec![expectation])
}
