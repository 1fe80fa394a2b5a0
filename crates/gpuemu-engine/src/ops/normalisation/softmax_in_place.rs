//! softmax written over its input.

use crate::case::Strategy;
use crate::ops::BuiltIn;
use crate::ops::normalisation::softmax::expect;
use crate::schema::{Property, Schema};

pub(in crate::ops) fn op() -> BuiltIn {
    BuiltIn::new(
        Schema::builtin("softmax_", "input[...,H] -> input[...,H]")
            .alias(&["softmax_inplace", "softmax_in_place", "inplace_softmax"])
            .reduces(&["H"])
            .describe(
                "Softmax along the last dim, written over its input: a kernel that reads a row again after it has \
                 begun to write it is wrong. A row with NaN or +Inf, or of nothing but -Inf, is NaN.",
                "exp(x - max) / sum(exp(x - max))",
            )
            .keywords(&["normalisation", "normalization", "probabilities", "in place", "attention"])
            .help("input", "logits; overwritten with their softmax")
            .bounded_by("u*y*(F + a*(s+W) + 2E + Q + 1), with s = max - x and W the mean of s under the softmax")
            .holds(&[
                Property::RowStochastic,
                Property::PermutationEquivariant,
                Property::BatchInvariant,
                Property::ShiftInvariant { input: "input" },
            ])
            .amplified_by(&[Strategy::Regular, Strategy::Tiny])
            .usual_bugs(&[
                "input read again after part of the row was overwritten",
                "padding enters the denominator",
                "maximum not subtracted",
                "-Inf tile gives NaN",
            ]),
        expect,
    )
}
