//! cross_entropy_backward: the gradient of the logits, row by row.

use crate::case::Strategy;
use crate::ops::normalisation::softmax::{FOLDED, RowSum, Shares};
use crate::ops::rounded::ANY_OVERFLOW;
use crate::ops::{Arithmetic, BuiltIn, Call, ExcuseKind, Expectation, OpError};
use crate::schema::{Property, Scalar, Schema};

pub(in crate::ops) fn op() -> BuiltIn {
    BuiltIn::new(
        Schema::builtin(
            "cross_entropy_backward",
            "input[N,V] target:int64[N] in 0..V grad_output[N] ignore_index:int=-100 label_smoothing:float=0.0 \
             -> grad_input[N,V]",
        )
        .alias(&["ce_backward", "cross_entropy_loss_backward", "softmax_cross_entropy_backward"])
        .reduces(&["V"])
        .at_least("V", 1)
        .choices("ignore_index", &[Scalar::Int(-100), Scalar::Int(0)])
        .choices("label_smoothing", &[Scalar::Float(0.0), Scalar::Float(0.1)])
        .describe(
            "Gradient of cross_entropy with respect to its logits, one upstream gradient per row (no reduction: a mean \
             is in grad_output). Rows whose target is ignore_index get 0, or NaN where their logits have no softmax. \
             A kernel that computes exp(x - logsumexp) declares `folded`.",
            "grad_output*(softmax(input) - ((1 - label_smoothing)*onehot(target) + label_smoothing/V))",
        )
        .keywords(&["gradient", "backward", "loss", "logits", "classification", "label smoothing", "training"])
        .help("input", "logits")
        .help("target", "class of each row")
        .help("grad_output", "upstream gradient of each row's loss")
        .help("ignore_index", "target of rows that have no gradient")
        .help("label_smoothing", "share of the target distribution that is spread over all classes evenly")
        .bounded_by(
            "|g|*(dsoftmax + u*3*t) + 3*u*|y|, with t the target distribution (without smoothing: u at the target)",
        )
        .holds(&[
            Property::ShiftInvariant { input: "input" },
            Property::Homogeneous { input: "grad_output", degree: 1 },
        ])
        .amplified_by(&[Strategy::Regular, Strategy::Tiny])
        .usual_bugs(&[
            "one subtracted at the wrong class",
            "upstream gradient of another row, or taken for 1",
            "padding enters the denominator",
            "ignored rows get a gradient",
            "smoothing divided by V - 1",
        ]),
        expect,
    )
}

/// An ignored row is 0; a kernel that multiplies by 0 leaves NaN where the softmax is.
const IGNORED: ExcuseKind = ExcuseKind::Overflow { nan: true, infinite: false, value: None };

fn expect(call: &Call<'_>) -> Result<Vec<Expectation>, OpError> {
    let (input, target, width) = (call.input("input")?, call.input("target")?, call.size("V")?);
    let (gradient, ignored) = (call.input("grad_output")?, call.int("ignore_index")? as f64);
    let (smoothing, summation) = (call.float("label_smoothing")?, call.summation(width.max(1))?);
    let units = Arithmetic::of(call).units;
    let mut expectation = Expectation::with_capacity(input.len());
    let mut exponentials = vec![0.0; width];
    for ((row, target), g) in input.chunks_exact(width.max(1)).zip(target).zip(gradient) {
        let row_sum = RowSum::of(row, &mut exponentials, call);
        if *target == ignored {
            for _ in row {
                if row_sum.is_none() || !g.is_finite() {
                    expectation.push_overflow(0.0, 0.0, IGNORED, "the softmax of an ignored row");
                } else {
                    expectation.push(0.0, 0.0);
                }
            }
            continue;
        }
        let Some(row_sum) = row_sum else {
            row.iter().for_each(|_| expectation.push(f64::NAN, 0.0));
            continue;
        };
        let shares = Shares::of(&row_sum, width, summation, call);
        for (class, (x, e)) in row.iter().zip(&exponentials).enumerate() {
            let (p, error) = shares.share(*x, *e);
            let hit = if class as f64 == *target { 1.0 - smoothing } else { 0.0 };
            let t = hit + smoothing / width as f64;
            let constants = if smoothing == 0.0 { t } else { 3.0 * t };
            let y = g * (p - t);
            let delta = g.abs() * (error + units.u * constants + units.flush)
                + 3.0 * units.u * y.abs()
                + units.mid * y.abs()
                + units.mid_eta
                + units.eta
                + units.flush * (1.0 + p);
            if row_sum.undetermined {
                expectation.push_undetermined(y, FOLDED);
            } else if g.is_infinite() {
                // p may be flushed to 0, and g·p − g·t is infinity minus infinity.
                expectation.push_overflow(y, 0.0, ANY_OVERFLOW, "an infinite upstream gradient");
            } else {
                expectation.push(y, delta);
            }
        }
    }
    Ok(vec![expectation])
}
