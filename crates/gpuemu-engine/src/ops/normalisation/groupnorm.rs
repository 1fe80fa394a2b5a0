//! groupnorm and instance_norm: channels normalised over their positions, in groups or alone.

use crate::case::Strategy;
use crate::ops::normalisation::layernorm::push_normalised;
use crate::ops::{BuiltIn, Call, Expectation, OpError};
use crate::schema::{Scalar, Schema};

const BOUND: &str = "|w|*r*(1+g)*dmean + |w*xhat|*(g + u*(R+4)) + u*(|y|+|b|) over the elements of a group, with \
    dmean = u*(F*mean|x| + 2*|mean|), g the relative error of r = 1/sqrt(var+eps)";

fn described(schema: Schema) -> Schema {
    schema
        .reduces(&["L"])
        .at_least("L", 1)
        .choices("eps", &[Scalar::Float(1e-5), Scalar::Float(1e-3)])
        .help("weight", "factor of a channel; 1 where absent")
        .help("bias", "addend of a channel; 0 where absent")
        .help("eps", "added to the variance, inside of the root")
        .bounded_by(BOUND)
        .amplified_by(&[Strategy::Tiny, Strategy::Shifted, Strategy::Regular])
        .usual_bugs(&[
            "weight and bias taken by group or position in place of channel",
            "padding enters the variance",
            "unbiased variance",
            "eps outside of the root",
            "one-pass variance",
        ])
}

pub(in crate::ops) fn op() -> BuiltIn {
    let schema = Schema::builtin(
        "groupnorm",
        "input[N,num_groups*C,L] weight?[num_groups*C] bias?[num_groups*C] num_groups:int=4 eps:float=1e-5 \
         -> out[N,num_groups*C,L]",
    );
    BuiltIn::new(
        described(schema)
            .alias(&["group_norm"])
            .at_least("C", 1)
            .reduces(&["C"])
            .choices("num_groups", &[1, 2, 3, 4, 8].map(Scalar::Int))
            .describe(
                "Groups of consecutive channels normalised to mean 0 and (biased) variance 1 over their channels and \
                 positions, then scaled and shifted by channel; L is all spatial dims as one. A NaN or infinity makes \
                 its group NaN.",
                "(x - mean_group)/sqrt(var_group + eps)*weight[channel] + bias[channel]",
            )
            .keywords(&["normalisation", "normalization", "group", "channel", "diffusion", "vision"])
            .help("num_groups", "groups that the channels are divided into; C channels each"),
        expect_groups,
    )
}

pub(in crate::ops) fn instance_op() -> BuiltIn {
    let schema = Schema::builtin("instance_norm", "input[N,C,L] weight?[C] bias?[C] eps:float=1e-5 -> out[N,C,L]");
    BuiltIn::new(
        described(schema)
            .alias(&["instancenorm"])
            .describe(
                "Each channel of each sample normalised to mean 0 and (biased) variance 1 over its positions, then \
                 scaled and shifted by channel: statistics of the input, no running ones. A NaN or infinity makes its \
                 channel NaN.",
                "(x - mean)/sqrt(var + eps)*weight[channel] + bias[channel]",
            )
            .keywords(&["normalisation", "normalization", "instance", "channel", "style"]),
        expect_channels,
    )
}

fn expect_groups(call: &Call<'_>) -> Result<Vec<Expectation>, OpError> {
    expect(call, call.size("num_groups")?, call.size("C")?)
}

fn expect_channels(call: &Call<'_>) -> Result<Vec<Expectation>, OpError> {
    expect(call, call.size("C")?, 1)
}

fn expect(call: &Call<'_>, groups: usize, channels: usize) -> Result<Vec<Expectation>, OpError> {
    let (input, positions, eps) = (call.input("input")?, call.size("L")?, call.float("eps")?);
    let (weight, bias) = (call.optional("weight"), call.optional("bias"));
    let mut expectation = Expectation::with_capacity(input.len());
    for (number, group) in input.chunks_exact((channels * positions).max(1)).enumerate() {
        let first = number % groups.max(1) * channels;
        let affine = |element: usize| {
            let channel = first + element / positions.max(1);
            (weight.map_or(1.0, |weight| weight[channel]), bias.map_or(0.0, |bias| bias[channel]))
        };
        push_normalised(&mut expectation, group, None, eps, affine, call)?;
    }
    Ok(vec![expectation])
}
