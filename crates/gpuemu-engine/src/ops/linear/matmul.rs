//! matmul of two matrices.

use super::product::{Products, push_products};
use crate::case::Strategy;
use crate::ops::{BuiltIn, Call, Expectation, OpError};
use crate::schema::{Property, Schema};

pub(in crate::ops) fn op() -> BuiltIn {
    BuiltIn::new(
        Schema::builtin("matmul", "a[M,K] b[K,N] -> out[M,N]")
            .alias(&["gemm", "mm"])
            .reduces(&["K"])
            .describe("Matrix product; zeros where K is 0.", "out[i,j] = sum_k a[i,k]*b[k,j]")
            .bounded_by("(u*F + 2*u_in + u_in^2)*sum|a*b| + K*(eta + flush) with F of K terms; 0 where all elements are whole numbers \
                 up to 2048 and sum|a*b| is exact in the accumulator")
            .keywords(&["linear algebra", "matrix multiplication", "dot product", "dense", "tensor core", "split-k"])
            .holds(&[
                Property::Linear { input: "a" },
                Property::Linear { input: "b" },
                Property::Homogeneous { input: "a", degree: 1 },
                Property::Homogeneous { input: "b", degree: 1 },
            ])
            .amplified_by(&[Strategy::Integers, Strategy::Regular])
            .usual_bugs(&["accumulator overwritten", "K tail not masked", "accumulation in a narrow dtype"]),
        expect,
    )
}

fn expect(call: &Call<'_>) -> Result<Vec<Expectation>, OpError> {
    let (a, b) = (call.input("a")?, call.input("b")?);
    let (rows, inner, columns) = (call.size("M")?, call.size("K")?, call.size("N")?);
    let mut expectation = Expectation::with_capacity(rows * columns);
    push_products(call, &mut expectation, Products::of(call, a, b, rows, inner, columns))?;
    Ok(vec![expectation])
}
