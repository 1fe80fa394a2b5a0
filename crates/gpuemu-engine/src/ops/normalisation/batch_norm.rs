//! batch_norm with running statistics, as in inference.

use crate::case::Strategy;
use crate::ops::expectation::overflows;
use crate::ops::rounded::ANY_OVERFLOW;
use crate::ops::{Arithmetic, BuiltIn, Call, Expectation, OpError};
use crate::schema::{Scalar, Schema};

pub(in crate::ops) fn op() -> BuiltIn {
    BuiltIn::new(
        Schema::builtin(
            "batch_norm",
            "input[N,C,L] running_mean[C] running_var[C] in non_negative weight?[C] bias?[C] eps:float=1e-5 \
             -> out[N,C,L]",
        )
        .alias(&["batchnorm", "batchnorm_inference", "batch_norm_inference"])
        .choices("eps", &[Scalar::Float(1e-5), Scalar::Float(1e-3)])
        .describe(
            "Channels normalised by given (running) mean and variance, as batch norm does in inference: no statistics \
             of the input; L is all spatial dims as one. Folding everything into one factor and one addend a channel \
             is allowed for.",
            "(x - running_mean)/sqrt(running_var + eps)*weight + bias",
        )
        .keywords(&["normalisation", "normalization", "batch", "inference", "running statistics", "channel"])
        .help("running_mean", "mean of each channel")
        .help("running_var", "variance of each channel, as it is divided by: no correction")
        .help("weight", "factor of a channel; 1 where absent")
        .help("bias", "addend of a channel; 0 where absent")
        .help("eps", "added to the variance, inside of the root")
        .bounded_by("|w*xhat|*u*(R+5) + 2*u*(|x|+|mean|)*r*|w| + u*(|y|+|b|), with r = 1/sqrt(var+eps)")
        .amplified_by(&[Strategy::Tiny, Strategy::Regular])
        .usual_bugs(&[
            "statistics of the wrong channel",
            "eps outside of the root",
            "variance taken for a standard deviation",
            "bias normalised too",
        ]),
        expect,
    )
}

fn expect(call: &Call<'_>) -> Result<Vec<Expectation>, OpError> {
    let (input, channels, positions) = (call.input("input")?, call.size("C")?, call.size("L")?);
    let (mean, variance) = (call.input("running_mean")?, call.input("running_var")?);
    let (weight, bias, eps) = (call.optional("weight"), call.optional("bias"), call.float("eps")?);
    let units = Arithmetic::of(call).units;
    let mut expectation = Expectation::with_capacity(input.len());
    for (number, row) in input.chunks_exact(positions.max(1)).enumerate() {
        let channel = number % channels.max(1);
        let mean = mean[channel];
        let inverse = 1.0 / (variance[channel] + eps).sqrt();
        let w = weight.map_or(1.0, |weight| weight[channel]);
        let b = bias.map_or(0.0, |bias| bias[channel]);
        for x in row {
            let scaled = (x - mean) * inverse * w;
            let y = scaled + b;
            // x·(r·w) and mean·(r·w), where the factor is folded.
            let terms = (x.abs() + mean.abs()) * inverse * w.abs();
            let delta = scaled.abs() * units.u * (units.rsqrt + 5.0)
                + units.u * (2.0 * terms + y.abs() + b.abs())
                + (units.eta + units.flush) * (3.0 + (1.0 + inverse) * w.abs() + x.abs() + mean.abs());
            let factor = inverse * w.abs();
            let distance = x.abs() + mean.abs();
            let range = [distance, distance * inverse, factor, terms + b.abs()];
            let finite = x.is_finite() && mean.is_finite() && b.is_finite();
            if w.is_infinite() && inverse > 0.0 && !y.is_nan() {
                // x·w − mean·w is infinity minus infinity where (x − mean)·w is not.
                expectation.push_overflow(y, delta, ANY_OVERFLOW, "an infinite weight");
            } else if finite && range.iter().any(|number| overflows(*number, units.max)) && !y.is_nan() {
                expectation.push_overflow(y, delta, ANY_OVERFLOW, "(x - mean)*r, r*w, x*r*w or mean*r*w");
            } else {
                expectation.push(y, delta);
            }
        }
    }
    Ok(vec![expectation])
}
