//! Rotary position embedding with cosines and sines that are given.

use crate::case::Strategy;
use crate::ops::{Arithmetic, BuiltIn, Call, Expectation, OpError, Rounded};
use crate::schema::{Property, Scalar, Schema};

const BOUND: &str = "two products and their sum: 2u(|x1 cos| + |x2 sin|), and u_mid of each product where they are \
                     rounded to an intermediate dtype";

/// Cosines and sines for each position and column, as transformers has them.
pub(in crate::ops) fn op() -> BuiltIn {
    BuiltIn::new(
        Schema::builtin(
            "rope_cached",
            "q[B,H,M,2*P] cos[B,M,2*P] sin[B,M,2*P] interleaved:bool=false -> out[B,H,M,2*P]",
        )
        .alias(&["apply_rotary_pos_emb", "apply_rotary_emb"])
        .choices("interleaved", &[Scalar::Bool(false), Scalar::Bool(true)])
        .at_most("B", 8)
        .at_most("H", 16)
        .at_most("P", 128)
        .describe(
            "q*cos + rotate(q)*sin, cos and sin given for every column and shared by the heads. rotate maps column i \
                 of the first half to -q[i+P] and of the second to q[i-P], as transformers' rotate_half does; with \
                 `interleaved` it maps even i to -q[i+1] and odd i to q[i-1].",
            "out[i] = q[i]*cos[i] + rotate(q)[i]*sin[i]",
        )
        .help("cos", "cosine for each position and column")
        .help("sin", "sine for each position and column")
        .help("interleaved", "pairs are neighbours (2i, 2i+1) in place of halves (i, i+P)")
        .keywords(&["rotary", "rotate_half", "transformers", "position embedding", "gpt-j", "neox"])
        .bounded_by(BOUND)
        .holds(&[Property::Homogeneous { input: "q", degree: 1 }])
        .amplified_by(&[Strategy::Regular])
        .usual_bugs(&["sign of the sine", "halves and interleaved mixed up", "cos of another position"]),
        expect,
    )
}

/// Cosines and sines in one table that positions index, query and key in place, as vLLM has it.
pub(in crate::ops) fn in_place() -> BuiltIn {
    BuiltIn::new(
        Schema::builtin(
            "rope_",
            "positions:int64[T] in 0..P query[T,N,2*R+E] key[T,H,2*R+E] cos_sin_cache[P,2*R] \
                 is_neox_style:bool=true -> query[T,N,2*R+E] key[T,H,2*R+E]",
        )
        .alias(&["rotary_embedding_"])
        .choices("is_neox_style", &[Scalar::Bool(true), Scalar::Bool(false)])
        .at_least("P", 1)
        .at_most("T", 33)
        .at_most("N", 8)
        .at_most("H", 4)
        .at_most("R", 32)
        .sizes("E", &[0, 0, 1, 8])
        .describe(
            "Rotates query and key in place, as vLLM's rotary_embedding does. Row positions[t] of cos_sin_cache holds \
                 R cosines, then R sines. The first 2*R columns of each head are rotated: pair i is (i, i+R) in \
                 `is_neox_style`, else (2i, 2i+1); the other E stay as they are.",
            "(x1*cos - x2*sin, x2*cos + x1*sin)",
        )
        .help("positions", "row of the table for each token")
        .help("query", "N heads a token, overwritten")
        .help("key", "H heads a token, overwritten")
        .help("cos_sin_cache", "R cosines and R sines for each position")
        .help("is_neox_style", "pairs are halves (i, i+R) in place of neighbours (2i, 2i+1)")
        .keywords(&["vllm", "rotary", "in place", "position embedding", "gpt-j", "neox"])
        .bounded_by(BOUND)
        .amplified_by(&[Strategy::Regular])
        .usual_bugs(&[
            "sign of the sine",
            "first half overwritten before the second is read",
            "table row of the token's place rather than of its position",
            "columns beyond the rotated ones changed",
        ]),
        expect_in_place,
    )
}

/// along·cos ± across·sin.
fn rotated(arithmetic: &Arithmetic, along: f64, cos: f64, across: f64, sin: f64) -> Rounded {
    let product = |x: f64, y: f64| arithmetic.intermediate(arithmetic.multiply(Rounded::exact(x), Rounded::exact(y)));
    arithmetic.add(product(along, cos), product(across, sin))
}

/// Where a column's partner is, and whether the column is the second of its pair.
fn partner(column: usize, pairs: usize, interleaved: bool) -> (usize, bool) {
    match (interleaved, if interleaved { column % 2 == 1 } else { column >= pairs }) {
        (true, true) => (column - 1, true),
        (true, false) => (column + 1, false),
        (false, true) => (column - pairs, true),
        (false, false) => (column + pairs, false),
    }
}

fn expect(call: &Call<'_>) -> Result<Vec<Expectation>, OpError> {
    let (q, cos, sin) = (call.input("q")?, call.input("cos")?, call.input("sin")?);
    let [heads, positions, pairs] = [call.size("H")?, call.size("M")?, call.size("P")?];
    let interleaved = call.flag("interleaved");
    let (arithmetic, width) = (Arithmetic::of(call), 2 * pairs);
    let mut out = Expectation::with_capacity(q.len());
    for (index, row) in q.chunks_exact(width.max(1)).enumerate() {
        let batch = index / (heads * positions).max(1);
        let angles = (batch * positions + index % positions.max(1)) * width;
        for (column, x) in row.iter().enumerate() {
            let (other, second) = partner(column, pairs, interleaved);
            let across = if second { row[other] } else { -row[other] };
            let y = rotated(&arithmetic, *x, cos[angles + column], across, sin[angles + column]);
            out.push_rounded(y, "a product");
        }
    }
    Ok(vec![out])
}

fn expect_in_place(call: &Call<'_>) -> Result<Vec<Expectation>, OpError> {
    let (positions, table) = (call.input("positions")?, call.input("cos_sin_cache")?);
    let [pairs, rest] = [call.size("R")?, call.size("E")?];
    let neighbours = !call.flag("is_neox_style");
    let (arithmetic, width) = (Arithmetic::of(call), 2 * pairs + rest);
    let rotate = |tensor: &[f64], heads: usize| {
        let mut out = Expectation::with_capacity(tensor.len());
        for (index, row) in tensor.chunks_exact(width.max(1)).enumerate() {
            let position = positions[index / heads.max(1)] as usize;
            let (cos, sin) = table[position * 2 * pairs..][..2 * pairs].split_at(pairs);
            for (column, x) in row.iter().enumerate() {
                if column >= 2 * pairs {
                    out.push(*x, 0.0);
                    continue;
                }
                let (other, second) = partner(column, pairs, neighbours);
                let pair = if neighbours { column / 2 } else { column % pairs };
                let across = if second { row[other] } else { -row[other] };
                out.push_rounded(rotated(&arithmetic, *x, cos[pair], across, sin[pair]), "a product");
            }
        }
        out
    };
    let query = rotate(call.input("query")?, call.size("N")?);
    let key = rotate(call.input("key")?, call.size("H")?);
    Ok(vec![query, key])
}
