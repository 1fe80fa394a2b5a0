//! fused_moe: each token through its experts' gated units, and their weighted sum.

use crate::case::Strategy;
use crate::ops::elementwise::silu::silu;
use crate::ops::{Arithmetic, BuiltIn, Call, Expectation, OpError, Overflow, Rounded};
use crate::schema::{Property, Schema};

pub(super) fn ops() -> Vec<BuiltIn> {
    vec![BuiltIn::new(
        Schema::builtin(
            "fused_moe",
            "hidden[T,D] w1[E,2*I,D] w2[E,D,I] topk_weights:float32[T,K] topk_ids:int32[T,K] in 0..E -> out[T,D]",
        )
        .alias(&["fused_experts", "moe_mlp"])
        .reduces(&["D", "I"])
        .at_least("E", 1)
        .at_most("E", 32)
        .at_least("K", 1)
        .at_most("K", 8)
        .describe(
            "Each token through the gated unit of each of its experts, silu(gate)*up, whose gate is the first half of w1's rows; the results are weighted and added up. An expert named twice counts twice.",
            "out[t] = sum_j topk_weights[t,j]*w2[e] @ (silu(w1[e,:I] @ x)*(w1[e,I:] @ x)), e = topk_ids[t,j]",
        )
        .help("hidden", "one row for each token")
        .help("w1", "gate (first half of the rows) and up projection (second half) of each expert")
        .help("w2", "down projection of each expert")
        .help("topk_weights", "weight of each chosen expert")
        .help("topk_ids", "the experts of each token")
        .keywords(&["mixture of experts", "grouped gemm", "swiglu", "mlp"])
        .bounded_by("carried step by step: u*F(D)*|w1||x|, through silu*up (slope at most 1.1), u*F(I)*|w2||h|, u*F(K)*sum|w*y|; gate and up, their product and an expert's result may be rounded to the intermediate dtype")
        .holds(&[Property::Linear { input: "topk_weights" }, Property::Linear { input: "w2" }])
        .amplified_by(&[Strategy::Regular, Strategy::Tiny])
        .usual_bugs(&[
            "gate and up swapped",
            "weight applied twice, or not at all",
            "tail of the inner dim not masked",
            "experts' results overwritten in place of added up",
        ]),
        expect,
    )]
}

struct Sizes {
    width: usize,
    inner: usize,
}

fn expect(call: &Call<'_>) -> Result<Vec<Expectation>, OpError> {
    let (hidden, w1, w2) = (call.input("hidden")?, call.input("w1")?, call.input("w2")?);
    let (weights, ids) = (call.input("topk_weights")?, call.input("topk_ids")?);
    let (width, inner, choices) = (call.size("D")?, call.size("I")?, call.size("K")?.max(1));
    let sizes = Sizes { width, inner };
    let arithmetic = Arithmetic::of(call);
    let across = call.summation(choices)?;
    let mut expectation = Expectation::with_capacity(hidden.len());
    for (token, (weights, ids)) in weights.chunks_exact(choices).zip(ids.chunks_exact(choices)).enumerate() {
        let x = &hidden[token * width..][..width];
        let mut results = vec![Vec::with_capacity(choices); width];
        let mut open = vec![false; width];
        for (weight, id) in weights.iter().zip(ids) {
            let expert = *id as usize;
            let first = &w1[expert * 2 * inner * width..][..2 * inner * width];
            let second = &w2[expert * width * inner..][..width * inner];
            let Some(gated) = gated_unit(call, &arithmetic, x, first, &sizes)? else {
                open.fill(true);
                break;
            };
            for (column, (results, open)) in results.iter_mut().zip(&mut open).enumerate() {
                let row = &second[column * inner..][..inner];
                let down = dot(call, &arithmetic, gated.iter().zip(row), call.summation(inner.max(1))?);
                *open |= gated.iter().zip(row).any(|(gated, weight)| uncertain(*gated, *weight));
                *open |= uncertain(down, *weight);
                let weighted = arithmetic.multiply(Rounded::exact(*weight), down);
                // The weight may be on the gated unit already.
                results.push(arithmetic.intermediate(arithmetic.slack(weighted, 1.0)));
            }
        }
        for (results, open) in results.into_iter().zip(open) {
            if open {
                expectation.push_undetermined(0.0, "a gate of -Inf, or what may be 0 times an infinity");
            } else {
                expectation.push_rounded(arithmetic.sum(results, across), "an intermediate of an expert");
            }
        }
    }
    Ok(vec![expectation])
}

/// silu(gate)·up of a token and an expert. `None` where 0 meets an infinity in some kernels and not in others.
fn gated_unit(
    call: &Call<'_>,
    arithmetic: &Arithmetic,
    x: &[f64],
    first: &[f64],
    sizes: &Sizes,
) -> Result<Option<Vec<Rounded>>, OpError> {
    let roundings = call.summation(sizes.width.max(1))?;
    let token: Vec<Rounded> = x.iter().map(|value| Rounded::exact(*value)).collect();
    let project = |row: usize| {
        let weights = &first[row * sizes.width..][..sizes.width];
        arithmetic.intermediate(dot(call, arithmetic, token.iter().zip(weights), roundings))
    };
    let mut gated = Vec::with_capacity(sizes.inner);
    for index in 0..sizes.inner {
        let (gate, up) = (project(index), project(sizes.inner + index));
        let activated = activate(arithmetic, gate);
        let vanishing = activated.value.abs() <= arithmetic.units.tiny * (gate.value.abs() + 2.0) + activated.error;
        let meeting = up.value.is_infinite() && vanishing || uncertain(up, activated.value);
        if gate.value == f64::NEG_INFINITY || meeting {
            return Ok(None);
        }
        gated.push(arithmetic.intermediate(arithmetic.slack(arithmetic.multiply(activated, up), 1.0)));
    }
    Ok(Some(gated))
}

/// Whether 0 may meet an infinity in a product: what is computed may be 0, or of the other sign.
fn uncertain(computed: Rounded, exact: f64) -> bool {
    exact.is_infinite() && computed.error > 0.0 && computed.value.abs() <= computed.error
}

/// silu of a number that has an error of its own.
fn activate(arithmetic: &Arithmetic, gate: Rounded) -> Rounded {
    let (value, own) = silu(gate.value, &arithmetic.units);
    let sigmoid = if gate.value == 0.0 { 0.5 } else { value / gate.value };
    let slope = (sigmoid * (1.0 + gate.value * (1.0 - sigmoid))).abs();
    // The slope is at most 1.1 anywhere, and changes by at most 0.5 per unit.
    let carried = (slope * gate.error + 0.25 * gate.error * gate.error).min(1.1 * gate.error);
    let overflow = if gate.overflow == Overflow::None { Overflow::None } else { Overflow::Before };
    Rounded { value, error: own + if carried.is_nan() { 1.1 * gate.error } else { carried }, overflow }
}

/// A dot product with inputs that are exact, whose other factors have errors of their own.
fn dot<'a>(
    call: &Call<'_>,
    arithmetic: &Arithmetic,
    factors: impl Iterator<Item = (&'a Rounded, &'a f64)>,
    roundings: f64,
) -> Rounded {
    let units = &arithmetic.units;
    let (mut value, mut magnitude, mut carried, mut whole, mut count) = (0.0, 0.0, 0.0, true, 0usize);
    let mut overflow = Overflow::None;
    for (left, right) in factors {
        let product = left.value * right;
        value += product;
        magnitude += if product.is_finite() { product.abs() + left.error * right.abs() } else { 0.0 };
        carried += if *right == 0.0 { 0.0 } else { left.error * right.abs() };
        whole &= left.error == 0.0 && product.trunc() == product;
        overflow = overflow.max(left.overflow);
        count += 1;
    }
    let exact = whole && magnitude <= units.exact;
    let rounding = units.u * roundings + call.units.input * (2.0 + call.units.input);
    let own = if exact { 0.0 } else { rounding * magnitude + count as f64 * (units.eta + units.flush) };
    let beyond = magnitude > Expectation::OVERFLOW_SHARE * units.max;
    let overflow = if overflow != Overflow::None || beyond { Overflow::Before } else { Overflow::None };
    Rounded { value, error: carried + own, overflow }
}
