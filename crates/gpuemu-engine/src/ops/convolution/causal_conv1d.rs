//! causal_conv1d, Mamba's short depthwise convolution, over a sequence and one step of it.

use crate::case::Strategy;
use crate::ops::convolution::dot::{Dot, MAGNITUDE, PADDED, PADDED_REASON, Products};
use crate::ops::elementwise::sigmoid::sigmoid;
use crate::ops::elementwise::silu::{MINUS_INFINITY, silu};
use crate::ops::{BuiltIn, Call, ExcuseKind, Expectation, OpError};
use crate::schema::{Scalar, Schema, Units};

pub(in crate::ops) fn op() -> BuiltIn {
    let signature = "x[B,D,L] weight[D,K] bias?[D] initial_states?[B,D,K-1] silu_activation:bool=false -> out[B,D,L] final_states?[B,D,K-1]";
    let schema = Schema::builtin("causal_conv1d", signature)
        .alias(&["causal_conv1d_fn", "causal_depthwise_conv1d"])
        .describe(
            "Depthwise convolution of each channel with its own kernel over the current and the K-1 elements before it (the kernel's last tap is the current one); before the sequence stand `initial_states`, or zeros. With `silu_activation` its silu. `final_states` are the last K-1 elements of initial states and sequence together.",
            "v[b,d,l] = bias[d] + sum_k weight[d,k]*x[b,d,l-(K-1)+k]; out = silu_activation ? v*sigmoid(v) : v",
        )
        .help("initial_states", "what stands before the sequence; zeros where absent")
        .usual_bugs(&["the elements before the sequence read from another row", "kernel flipped"]);
    BuiltIn::new(shared(schema), expect)
}

/// One step of decoding.
pub(in crate::ops) fn update_op() -> BuiltIn {
    let signature =
        "x[B,D] conv_state[B,D,K] weight[D,K] bias?[D] silu_activation:bool=false -> out[B,D] conv_state[B,D,K]";
    let schema = Schema::builtin("causal_conv1d_update", signature)
        .describe(
            "One step of causal_conv1d: `conv_state`, the last K elements of each channel, is moved one to the left in place and gets x at its end; out is its product with the kernel, and with `silu_activation` the silu of that.",
            "conv_state = [conv_state[1:], x]; v[b,d] = bias[d] + sum_k weight[d,k]*conv_state[b,d,k]; out = silu_activation ? v*sigmoid(v) : v",
        )
        .help("conv_state", "the last K elements of each channel, the newest at the end; overwritten")
        .usual_bugs(&["the state before the step used for the product", "state not moved"]);
    BuiltIn::new(shared(schema), expect_update)
}

fn shared(schema: Schema) -> Schema {
    schema
        .sizes("K", &[4, 2, 3])
        .choices("silu_activation", &[Scalar::Bool(false), Scalar::Bool(true)])
        .help("x", "the sequence of each channel, or its newest element")
        .help("weight", "the kernel of each channel; its last tap meets the newest element")
        .help("silu_activation", "whether the result goes through silu (activation \"silu\" or \"swish\")")
        .keywords(&["mamba", "ssm", "depthwise", "short convolution", "decode"])
        .bounded_by("d = u*F*(|x||weight| + |bias|); with silu |silu'(v)|*d and silu's own bound")
        .amplified_by(&[Strategy::Integers, Strategy::Regular])
        .usual_bugs(&["taps in reverse", "activation left out or applied twice"])
}

fn expect(call: &Call<'_>) -> Result<Vec<Expectation>, OpError> {
    let (x, weight, bias) = (call.input("x")?, call.input("weight")?, call.optional("bias"));
    let initial = call.optional("initial_states");
    let (channels, length, taps) = (call.size("D")?, call.size("L")?, call.size("K")?);
    let before = taps.saturating_sub(1);
    let none = [];
    let products = Products::of(call, &[x, weight, initial.unwrap_or(&none)], bias, taps)?;
    let rows = call.size("B")? * channels;
    let mut out = Expectation::with_capacity(x.len());
    let mut last = Expectation::with_capacity(rows * before);
    for row in 0..rows {
        let (sequence, kernel) = (&x[row * length..][..length], &weight[row % channels * taps..][..taps]);
        let earlier = initial.map(|initial| &initial[row * before..][..before]);
        let own_bias = bias.and_then(|bias| bias.get(row % channels)).copied();
        // Nothing where the sequence has not begun and no state is given.
        let at = |place: usize| match place.checked_sub(before) {
            Some(place) => sequence.get(place).copied(),
            None => earlier.and_then(|earlier| earlier.get(place)).copied(),
        };
        for place in 0..length {
            let mut dot = Dot::starting(own_bias);
            for (tap, weight) in kernel.iter().enumerate() {
                match at(place + tap) {
                    Some(x) => dot.add(x, *weight, products.units.flush),
                    None => dot.pad(*weight),
                }
            }
            activate(call, &dot, &products, &mut out);
        }
        (length..length + before).for_each(|place| last.push(at(place).unwrap_or(0.0), 0.0));
    }
    Ok(if call.wants("final_states") { vec![out, last] } else { vec![out] })
}

fn expect_update(call: &Call<'_>) -> Result<Vec<Expectation>, OpError> {
    let (x, state, weight) = (call.input("x")?, call.input("conv_state")?, call.input("weight")?);
    let bias = call.optional("bias");
    let (channels, taps) = (call.size("D")?, call.size("K")?);
    let products = Products::of(call, &[x, state, weight], bias, taps)?;
    let mut out = Expectation::with_capacity(x.len());
    let mut moved = Expectation::with_capacity(state.len());
    for (row, (newest, state)) in x.iter().zip(state.chunks_exact(taps.max(1))).enumerate() {
        let kernel = &weight[row % channels * taps..][..taps];
        let mut dot = Dot::starting(bias.and_then(|bias| bias.get(row % channels)).copied());
        for (element, weight) in state[1..].iter().chain([newest]).zip(kernel) {
            dot.add(*element, *weight, products.units.flush);
            moved.push(*element, 0.0);
        }
        activate(call, &dot, &products, &mut out);
    }
    Ok(vec![out, moved])
}

/// Adds v or silu(v) to what is expected.
fn activate(call: &Call<'_>, dot: &Dot, products: &Products, expectation: &mut Expectation) {
    if !call.flag("silu_activation") {
        return dot.push(products, expectation);
    }
    let (v, mut units) = (dot.value, products.units);
    if units.reference > 0.0 {
        units.u *= 2.0;
    }
    if dot.overflows(&units) {
        let kind = ExcuseKind::Overflow { nan: true, infinite: true, value: Some(0.0) };
        let (y, delta) = if v.is_finite() { carried(v, dot.delta(products), &units) } else { (v.max(0.0), 0.0) };
        return expectation.push_overflow(if v.is_nan() { v } else { y }, delta, kind, MAGNITUDE);
    }
    if v == f64::NEG_INFINITY {
        return expectation.push_overflow(0.0, 0.0, MINUS_INFINITY, "-Inf times 0");
    }
    let (y, delta) = carried(v, dot.delta(products), &units);
    if dot.poisoned && !v.is_nan() {
        expectation.push_overflow(y, delta, PADDED, PADDED_REASON);
    } else {
        expectation.push(y, delta);
    }
}

/// y and δ of silu at a number that may be off by `error`: |silu''| is at most ½ and |silu'| at most 1.1.
fn carried(v: f64, error: f64, units: &Units) -> (f64, f64) {
    let (y, own) = silu(v, units);
    let gate = sigmoid(v);
    let slope = if gate == 0.0 { 0.0 } else { (gate * (1.0 + v * sigmoid(-v))).abs() };
    let slope = (slope + 0.5 * error).min(1.1);
    // Silu's own roundings are those of a number that is not quite v.
    (y, own + slope * error + 16.0 * units.u * error)
}
