//! selective_scan, the state space model of Mamba, and selective_state_update, one step of it.

use crate::case::Strategy;
use crate::ops::convolution::selective_state::{State, Step};
use crate::ops::elementwise::silu::silu;
use crate::ops::{Arithmetic, BuiltIn, Call, ExcuseKind, Expectation, OpError, Rounded};
use crate::schema::{Scalar, Schema};

pub(in crate::ops) fn op() -> BuiltIn {
    let signature = "u[N,E,L] delta[N,E,L] in non_negative unless delta_softplus A[E,S] in non_positive B[N,S,L] C[N,S,L] D?[E] z?[N,E,L] delta_bias?[E] in non_negative unless delta_softplus delta_softplus:bool=false -> out[N,E,L]";
    let schema = Schema::builtin("selective_scan", signature)
        .alias(&["selective_scan_fn", "mamba_scan", "ssm_scan"])
        .describe(
            "Selective state space model of Mamba: E channels with S states each, from zero, along L steps. Step sizes are delta + delta_bias, through softplus (the identity above 20) where `delta_softplus`. `D` adds a skip connection, `z` gates with its silu. B and C are shared by all channels.",
            "d = delta + delta_bias, softplus(d) where delta_softplus; x[t] = exp(d[t]*A)*x[t-1] + d[t]*B[t]*u[t]; out[t] = (sum_s C[t]*x[t] + D*u[t])*silu(z[t])",
        )
        .help("u", "the sequence of each channel")
        .help("delta", "step sizes before bias and softplus")
        .help("delta_bias", "added to delta; 0 where absent")
        .help("delta_softplus", "whether step sizes go through softplus; without it they must not be negative")
        .usual_bugs(&["the state not carried over a chunk", "B or C of another step"]);
    BuiltIn::new(shared(schema, "delta_softplus").at_least("L", 1), expect)
}

/// One step of decoding.
pub(in crate::ops) fn update_op() -> BuiltIn {
    let signature = "state[N,E,S] x[N,E] dt[N,E] in non_negative unless dt_softplus A[E,S] in non_positive B[N,S] C[N,S] D?[E] z?[N,E] dt_bias?[E] in non_negative unless dt_softplus dt_softplus:bool=false -> out[N,E] state[N,E,S]";
    let schema = Schema::builtin("selective_state_update", signature)
        .describe(
            "One step of selective_scan: `state` is updated in place, and out is computed from it before it is rounded to its dtype. Step sizes are dt + dt_bias, through softplus (the identity above 20) where `dt_softplus`. `D` adds a skip connection, `z` gates with its silu.",
            "d = dt + dt_bias, softplus(d) where dt_softplus; state = exp(d*A)*state + d*B*x; out = (sum_s C*state + D*x)*silu(z)",
        )
        .help("state", "the states of each channel; overwritten")
        .help("x", "the newest element of each channel")
        .help("dt", "step sizes before bias and softplus")
        .help("dt_bias", "added to dt; 0 where absent")
        .help("dt_softplus", "whether step sizes go through softplus; without it they must not be negative")
        .usual_bugs(&["out from the state before the step", "state rounded before out is computed"]);
    BuiltIn::new(shared(schema, "dt_softplus"), expect_update)
}

fn shared(schema: Schema, softplus: &str) -> Schema {
    let schema = ["E", "S"].into_iter().fold(schema, |schema, dimension| schema.at_most(dimension, 128));
    schema
        .reduces(&["S"])
        .choices(softplus, &[Scalar::Bool(false), Scalar::Bool(true)])
        .help("A", "rates of decay, negative or zero")
        .help("B", "how the input enters each state")
        .help("C", "how each state enters the output")
        .help("D", "factor of the input in the output; 0 where absent")
        .help("z", "gate; none where absent")
        .keywords(&["mamba", "ssm", "state space model", "s6", "recurrence", "associative scan"])
        .bounded_by("errors of exp(d*A) and d*B*u carried along the recurrence on magnitudes, which holds for a sequential kernel and for a scan; u*F(S) of the sum over states; silu's bound")
        .amplified_by(&[Strategy::Regular, Strategy::Tiny])
        .usual_bugs(&["softplus left out", "delta missing from B", "D added after the gate", "z gated by sigmoid"])
}

fn expect(call: &Call<'_>) -> Result<Vec<Expectation>, OpError> {
    let model = Model::of(call, "delta_softplus")?;
    let (u, delta, z) = (call.input("u")?, call.input("delta")?, call.optional("z"));
    let (gains, mixes) = (call.input("B")?, call.input("C")?);
    let bias = call.optional("delta_bias");
    let (channels, states, length) = (call.size("E")?, call.size("S")?, call.size("L")?);
    let mut expectation = Expectation::with_capacity(u.len());
    let mut terms = Vec::with_capacity(states + 1);
    for row in 0..call.size("N")? * channels {
        let (entry, channel) = (row / channels, row % channels);
        let mut held = vec![State::empty(); states];
        for time in 0..length {
            let here = row * length + time;
            let step = model.step_size(delta[here], bias.and_then(|bias| bias.get(channel)).copied());
            terms.clear();
            let mut unsure = false;
            for (index, state) in held.iter_mut().enumerate() {
                let place = (entry * states + index) * length + time;
                let decay = model.decays[channel * states + index];
                state.advance(&model.arithmetic, &Step { delta: step, decay, gain: gains[place], input: u[here] });
                unsure |= state.is_unsure(mixes[place], &model.arithmetic);
                let value = state.rounded(&model.arithmetic);
                terms.push(model.arithmetic.multiply(value, Rounded::exact(mixes[place])));
            }
            let gate = z.and_then(|z| z.get(here)).copied();
            model.finish(call, &mut terms, channel, u[here], gate, unsure, &mut expectation)?;
        }
    }
    Ok(vec![expectation])
}

fn expect_update(call: &Call<'_>) -> Result<Vec<Expectation>, OpError> {
    let model = Model::of(call, "dt_softplus")?;
    let (held, x, delta, z) = (call.input("state")?, call.input("x")?, call.input("dt")?, call.optional("z"));
    let (gains, mixes) = (call.input("B")?, call.input("C")?);
    let bias = call.optional("dt_bias");
    let (channels, states) = (call.size("E")?, call.size("S")?);
    let (mut out, mut updated) = (Expectation::with_capacity(x.len()), Expectation::with_capacity(held.len()));
    let mut terms = Vec::with_capacity(states + 1);
    for (row, input) in x.iter().enumerate() {
        let (entry, channel) = (row / channels, row % channels);
        let step = model.step_size(delta[row], bias.and_then(|bias| bias.get(channel)).copied());
        terms.clear();
        let mut unsure = false;
        for index in 0..states {
            let mut state = State::holding(held[row * states + index]);
            let (decay, gain) = (model.decays[channel * states + index], gains[entry * states + index]);
            state.advance(&model.arithmetic, &Step { delta: step, decay, gain, input: *input });
            let value = state.rounded(&model.arithmetic);
            unsure |= state.is_unsure(mixes[entry * states + index], &model.arithmetic);
            if state.is_unsure(0.0, &model.arithmetic) {
                updated.push_undetermined(value.value, UNSURE);
            } else {
                updated.push_rounded(value, OVERFLOWING);
            }
            terms.push(model.arithmetic.multiply(value, Rounded::exact(mixes[entry * states + index])));
        }
        let gate = z.and_then(|z| z.get(row)).copied();
        model.finish(call, &mut terms, channel, *input, gate, unsure, &mut out)?;
    }
    Ok(vec![out, updated])
}

const OVERFLOWING: &str = "exp(delta*A), a state or a product on the way to it";

const UNSURE: &str = "products of exp(delta*A) that underflow before an infinity or growth";

/// silu(−Inf) is 0 or NaN, and what it gates too.
const GATED: ExcuseKind = ExcuseKind::Overflow { nan: true, infinite: false, value: Some(0.0) };

/// What all channels have in common.
struct Model<'a> {
    arithmetic: Arithmetic,
    softplus: bool,
    decays: &'a [f64],
    skips: Option<&'a [f64]>,
}

impl<'a> Model<'a> {
    fn of(call: &'a Call<'a>, softplus: &str) -> Result<Self, OpError> {
        let (decays, skips) = (call.input("A")?, call.optional("D"));
        Ok(Self { arithmetic: Arithmetic::of(call), softplus: call.flag(softplus), decays, skips })
    }

    /// Δ.
    fn step_size(&self, delta: f64, bias: Option<f64>) -> Rounded {
        let arithmetic = &self.arithmetic;
        let delta = Rounded::exact(delta);
        let sum = bias.map_or(delta, |bias| arithmetic.add(delta, Rounded::exact(bias)));
        if !self.softplus {
            return sum;
        }
        if sum.value > THRESHOLD {
            // Without the threshold the result is larger by log(1 + e^−x).
            return arithmetic.slack(sum.widened(libm::exp(-sum.value)), 4.0);
        }
        let power = arithmetic.exp(sum);
        let value = libm::log1p(power.value);
        // log(1 + e^x) is as good as log1p(e^x), so that its error is absolute.
        let logarithm = arithmetic.log(arithmetic.add(Rounded::exact(1.0), power));
        Rounded { value, error: logarithm.error + 4.0 * arithmetic.units.u * value, ..logarithm }
    }

    /// Σ C·x + D·u, gated.
    #[allow(clippy::too_many_arguments, reason = "the parts of one output")]
    fn finish(
        &self,
        call: &Call<'_>,
        terms: &mut Vec<Rounded>,
        channel: usize,
        input: f64,
        gate: Option<f64>,
        unsure: bool,
        expectation: &mut Expectation,
    ) -> Result<(), OpError> {
        let arithmetic = &self.arithmetic;
        if let Some(skip) = self.skips.and_then(|skips| skips.get(channel)) {
            terms.push(arithmetic.multiply(Rounded::exact(*skip), Rounded::exact(input)));
        }
        let count = terms.len();
        let mut y = arithmetic.sum(terms.drain(..), call.summation(count.max(1))?);
        let (mut vanishing, mut unsure) = (false, unsure);
        if let Some(z) = gate {
            unsure |= z.is_infinite() && y.error >= y.value.abs();
            let (value, error) = silu(z, &arithmetic.units);
            // silu(−Inf) is 0 or NaN, and a gate that underflows is 0.
            vanishing = z == f64::NEG_INFINITY || (y.value.is_infinite() && value.abs() < arithmetic.units.tiny);
            let value = if z == f64::NEG_INFINITY { 0.0 } else { value };
            let error = if value.is_finite() && z.is_finite() { error } else { 0.0 };
            y = arithmetic.multiply(y, Rounded { error, ..Rounded::exact(value) });
        }
        if unsure {
            expectation.push_undetermined(y.value, UNSURE);
        } else if vanishing && !y.value.is_nan() {
            expectation.push_overflow(y.value, y.error, GATED, "a gate of -Inf or underflowing");
        } else {
            expectation.push_rounded(y, OVERFLOWING);
        }
        Ok(())
    }
}

/// Above this softplus is the identity.
const THRESHOLD: f64 = 20.0;
